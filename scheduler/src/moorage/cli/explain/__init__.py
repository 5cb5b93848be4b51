"""``moorage explain``: the command in `command`; `source` finds the facts, `text` writes."""
