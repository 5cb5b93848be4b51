"""``moorage run``: the scheduler as a process, and its composition, which ``moorage up`` shares.

`command` is the command. `flags` lists every flag of kube-scheduler, and `overrides` applies given
flags to a configuration. `scheduler_options` holds the options of a scheduler. `scheduling`
composes the scheduler, and `standing` starts the one of a sandbox. `serving` has the health,
metrics and configuration endpoints.
"""
