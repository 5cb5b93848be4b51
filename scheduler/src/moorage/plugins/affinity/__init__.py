"""Affinity and anti-affinity between pods, by topology domain.

- `inter_pod_affinity`: the plugin InterPodAffinity.
- `counts`: the counts of PreFilter, with and without nominated pods, and the rows that fail.
- `incoming`: the terms of the pod to be placed, as count keys.
- `domain_counts`: pods counted by the values of a node label.
- `hints`: the cluster events that may cure a rejection.
"""
