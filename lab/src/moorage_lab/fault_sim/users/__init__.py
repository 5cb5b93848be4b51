"""The acts of users and the faults of a simulation, drawn from a seed.

`plot` keeps a script under way. `pods`, `sets`, `operations`, `groups` and `quotas` add what users
do all the time. `combined` adds pods that ask for several things together. `stored` has objects of
storage and devices. `faults` adds faults.
"""
