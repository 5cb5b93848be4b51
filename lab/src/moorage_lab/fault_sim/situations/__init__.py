"""The situations of a simulation: pods that wait for one thing, and an event that gives it to them.

Belongs here: tables of small declarations, each with its scene, its event and what it promises.
`situation` has the verbs in which they are written. `nodes`, `neighbours`, `new_nodes`,
`priorities`, `pod_groups`, `quotas`, `storage` and `storage_changes` are about things that a pod
can wait for. `late_failures` and `delayed_steps` are about pods whose way to their node fails late.
A scheduler that misses the event lets the pod wait for ever, or until the next flush of pods that
nothing woke. So each way in which an event can wake a pod has a declaration.
"""
