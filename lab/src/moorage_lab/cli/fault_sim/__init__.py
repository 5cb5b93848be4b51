"""``moorage fault-sim``: the commands in `command`; `text` writes their reports."""
