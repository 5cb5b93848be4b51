"""Pod groups that the configuration does not schedule as groups, so that nobody wonders.

kube-scheduler ignores a group whose plugin or feature gate is off: its pods are placed one by one,
and nothing says so.

- `index`: which pods name such a group, and what would turn groups on.
- `reports`: condition and Event on the group and on one member.
- `objects`: the objects of groups that no pod has named yet.

Nothing is turned on by itself, as the order of the queue would change under a running cluster. The
pods are scheduled, as by kube-scheduler: clusters rely on that. The index follows the log of
changed pods, so the way of a pod to its node costs nothing. Only `moorage run` and `moorage up`
watch objects, and readiness does not wait for them: a server need not have the kinds.
"""
