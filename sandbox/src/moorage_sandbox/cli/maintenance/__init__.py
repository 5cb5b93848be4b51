"""``moorage cordon``, ``uncordon`` and ``drain``: the commands in `command`; `drain` evicts."""
