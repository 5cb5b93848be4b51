"""``moorage simulate``: the command in `command`; `text` writes for people."""
