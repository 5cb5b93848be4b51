"""The scheduling cycle of pod groups.

- `cycle`: places the members of a group one after another with the cycle of their profile.
- `asking`: the same in a profile with extenders.
- `trying`: the members tried so far, in a trial.
- `placements`: the parts of the cluster in which a group is tried, and the choice among them.
- `orders`: other orders in which members are tried.
- `decision`: the outcome for each member.
- `whole_gangs`: adds to victims the rest of their gangs.
- `room`: bounds how many members could have a place.
- `sub_groups`: groups whose sub-groups have minima and topologies of their own.
- `reserved_room`: room reserved for one group that waits.
"""
