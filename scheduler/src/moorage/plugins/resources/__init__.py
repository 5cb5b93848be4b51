"""CPU, memory and extended resources: whether a pod fits, and scores by use.

- `node_resources_fit`: the plugin NodeResourcesFit.
- `node_resources_balanced_allocation`: the plugin NodeResourcesBalancedAllocation.
- `node_resources_allocatable`: the plugin NodeResourcesAllocatable.
- `scoring`: scores from the use of each resource.
- `free_shares`: scores by the free shares of all nodes at once.
- `derived_column`: a column computed from others, brought up to date when it is read.
- `device_classes`: the DeviceClass that stands for an extended resource.
- `device_totals`: the numbers of reachable and of allocated devices of a class, by node.
- `device_columns`: these numbers as columns, kept from one attempt to the next.
"""
