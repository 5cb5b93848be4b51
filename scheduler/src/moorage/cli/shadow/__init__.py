"""``moorage shadow``: the command in `command`; `running` watches, `text` writes the report."""
