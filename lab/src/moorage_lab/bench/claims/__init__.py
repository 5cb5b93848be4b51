"""Pods with ResourceClaims in benchmarks: their workloads, and the writes of a scheduler in memory.

``workloads`` has the objects and the pods. ``writes`` reserves devices for decided pods, and shows
the written allocations as a watch would.
"""
