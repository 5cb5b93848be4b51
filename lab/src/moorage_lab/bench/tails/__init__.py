"""The slow kinds of decisions: claims, preemption, quotas, gangs, topology, unlike pods.

``cases`` has each case and its two sizes. ``preemptors`` has the workloads in which pods have to
evict others. ``groups`` measures groups. ``run`` measures each size in a process of its own, and
``report`` prints the times that most decisions stay below.
"""
