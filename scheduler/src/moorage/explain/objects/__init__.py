"""Answers about nodes, claims, namespaces and pod groups, as parts of `moorage.explain.workloads`.

Pods are counted by stage and cause as those of a workload are. A claim is explained by a probe: a
pod that needs nothing but the claim.

- `nodes`, `claims`, `namespaces`, `groups`: a module for each.
"""
