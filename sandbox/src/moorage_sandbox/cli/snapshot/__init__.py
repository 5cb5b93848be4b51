"""``moorage snapshot``: the command in `command`; `transfer` saves and loads objects."""
