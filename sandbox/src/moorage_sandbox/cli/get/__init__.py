"""``moorage get``: the command in `command`; `getter` asks the server and prints the answers."""
