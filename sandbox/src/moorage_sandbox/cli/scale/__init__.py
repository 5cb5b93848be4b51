"""``moorage scale``: ``command`` has the subcommands."""
