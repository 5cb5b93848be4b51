"""Groups with sub-groups: a try of all of them, each in its own part of the cluster.

- `trying`: the tree of sub-groups, tried from the root.
- `domains`: the topology domains of one sub-group.
"""
