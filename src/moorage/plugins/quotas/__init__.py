"""Elastic quotas: namespaces share a cluster, borrow, and give back.

- `capacity_scheduling`: the plugin CapacityScheduling.
- `elastic_quotas`: bounds and use of each quota, as numbers.
- `victims`: the pods that may be evicted so that a namespace gets its share.
"""
