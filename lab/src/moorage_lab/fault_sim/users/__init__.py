"""The acts of users and the faults of a simulation, drawn from a seed.

`plot` keeps a script under way. `pods`, `sets`, `operations` and `groups` add what users do all the
time. `combined` adds pods that ask for several things together. `waits` adds pods that wait for one
thing, and later gives them this thing. `faults` adds faults.
"""
