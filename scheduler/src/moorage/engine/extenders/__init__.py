"""The scheduling cycle of profiles with HTTP extenders, the only attempts that await."""
