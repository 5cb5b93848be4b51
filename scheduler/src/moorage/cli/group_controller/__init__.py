"""``moorage group-controller``: keeps the status of groups and elastic quotas."""
