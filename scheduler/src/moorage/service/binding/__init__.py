"""From a decision to the API server: Permit, binding, evictions and the writes about pods.

`pod_writes` keeps the writes about one pod in order. Does not belong here: decisions (`attempts`).
"""
