"""Elastic quotas: namespaces share a cluster and borrow unused minimums.

- `capacity_scheduling`: the plugin CapacityScheduling.
- `elastic_quotas`: bounds and use of each quota.
- `victims`: the pods that may be evicted so that a namespace gets its minimum.
"""
