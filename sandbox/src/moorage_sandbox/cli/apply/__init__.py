"""``moorage apply``: the command in `command`; `patch` computes the three-way patch it sends."""
