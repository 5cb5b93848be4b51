"""The running scheduler: the only room that awaits for it and owns its tasks.

`assembly` is the list of the parts, `core` of those that decide, and `scheduler` runs them; a part
is in the room of what it does. The way of a pod: `intake` takes in watch events; `attempts` pops a
pod and has the engine decide, and `groups` does so for pod groups; `binding` binds, evicts and
keeps the writes about one pod in order. Plugins come as a registry. `process` has leadership,
health and metrics, `questions` the answers about the scheduler, and `serving` decides who may read
them.

Does not belong here: judging nodes (`engine`, `plugins`), beliefs about the cluster (`state`).
"""
