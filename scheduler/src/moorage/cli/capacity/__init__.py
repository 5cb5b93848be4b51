"""``moorage capacity``: the command in `command`, its text in `text`."""
