"""What plugins contribute to answers for people, and to no decision.

- `relaxations`: changes of a pod that ask less of a plugin.
- `held_devices`: the devices that bound pods hold.
"""
