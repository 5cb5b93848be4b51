"""``moorage bench path``: the processor time of a pod's way through the scheduler.

- `null_server`: an API server that answers at once and shows a scripted cluster.
- `parts`: processor time by part of the scheduler.
- `run`: one measurement.
"""
