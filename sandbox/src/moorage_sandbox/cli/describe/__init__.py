"""``moorage describe``: the command in `command`; `text` formats the lines about an object."""
