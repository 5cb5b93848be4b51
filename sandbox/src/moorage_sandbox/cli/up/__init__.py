"""``moorage up``: the command in `command`; `server_options` are the options of its API server."""
