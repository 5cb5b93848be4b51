"""``moorage describe``: the command in `command`; `text` writes the lines about an object."""
