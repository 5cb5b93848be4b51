"""``moorage delete``: the command in `command`; `deletion` finds and deletes objects, and waits."""
