"""Contributions of plugins to answers for people; no decision reads them.

- `relaxations`: changes of a pod that ask less of a plugin.
- `held_devices`: the devices that bound pods hold.
"""
