"""``moorage run``: the scheduler as a process, and its composition, which ``moorage up`` shares.

`command` is the command. `flags` lists every flag of kube-scheduler, and `overrides` applies given
flags to a configuration. `scheduler_options` says what a scheduler is asked for. `scheduling`
composes the scheduler, `serving` its health, metrics and configuration endpoints.
"""
