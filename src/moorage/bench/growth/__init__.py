"""How the time of a pod grows with the cluster: what grows, the measurements, and their report.

``axes`` has what grows and the workload of each size. ``run`` measures each size in a process of
its own. ``report`` compares the sizes of an axis and draws them.
"""
