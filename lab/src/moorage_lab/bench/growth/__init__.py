"""The growth of a pod's time with the cluster: axes, measurements and their report.

``axes`` has each axis and the workload of each size. ``run`` measures each size in a process of
its own. ``report`` compares the sizes of an axis and draws them.
"""
