"""The acts of users and the faults of a simulation, drawn from a seed.

`plot` keeps a script under way. `pods`, `sets`, `nodes` and `groups` add what users do all the
time. `waits` adds pods that wait for one thing, and later gives them this thing. `strikes` adds
faults.
"""
