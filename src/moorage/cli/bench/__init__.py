"""``moorage bench``: one module for each kind of benchmark, and `command`, which joins them.

`workloads` decides pods, gangs and plugins in memory. `api`, `extender`, `gang_arrivals` and `soak`
start servers of their own. What is measured is in `moorage.bench`; here are options and tables.
"""
