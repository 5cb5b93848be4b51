"""``moorage bench``: one module for each kind of benchmark, and `command`, which joins them.

`workloads` measures pods, gangs and plugins in memory. `api`, `extender`, `gang_arrivals` and
`soak` start servers. `sizes` compares sizes. `fgd` repeats published experiments. The measurements
are in `moorage_lab.bench`; options and tables are here.
"""
