"""``moorage what-if``: the command in `command`; `parsing` reads the changes, `text` writes."""
