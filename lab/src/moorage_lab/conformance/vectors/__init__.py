"""Cases of upstream's table tests, which were transcribed and not recorded.

- `single_plugin`: one plugin at a time.
- `functions`: functions that several plugins use.
- `queue_script`: the scheduling queue, step by step.
- `group_cycle`: the cycle of one group with made-up plugins.
- `group_preemption`: preemption by one group, and the units of its victims.
- `group_members`: the order of the members of a group.
"""
