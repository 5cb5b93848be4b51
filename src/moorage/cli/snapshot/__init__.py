"""``moorage snapshot``: the command in `command`; `transfer` writes objects to a file and back."""
