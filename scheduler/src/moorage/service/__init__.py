"""The running scheduler: the only room that awaits for it and owns its tasks.

`assembly` is the list of the parts, and `scheduler` runs them. The way of a pod: `ingest` takes in
watch events; `pump` pops a pod and has the engine decide; `group_attempt` does so for pod groups,
and `extended_attempts` for pods that extenders are asked about;
`outcomes` hands the decision on, to `binding_cycle` or to `failure`; `evictions` makes room;
`pod_writes` keeps the writes about one pod in order. Plugins come as a registry.
`health` answers on the secure port, `questions` has the answers about the scheduler, and `serving`
decides who may read them.

Does not belong here: judging nodes (`engine`, `plugins`), beliefs about the cluster (`state`).
"""
