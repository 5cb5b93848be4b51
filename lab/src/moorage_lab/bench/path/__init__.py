"""``moorage bench path``: the processor time of a pod's way through the scheduler.

- `null_server`: an API server that answers at once and shows a scripted cluster.
- `standing`: the objects that the server has from the start.
- `running_pod`: the pods among them.
- `parts`: processor time by part of the scheduler.
- `run`: one measurement.
"""
