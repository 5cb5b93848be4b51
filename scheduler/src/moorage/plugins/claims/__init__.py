"""Dynamic resource allocation: the claims of a pod, from PreFilter to PreBind.

- `dynamic_resources`: the plugin DynamicResources.
- `devices`: the structured allocator, which chooses devices on a node.
- `attempt`: the claims of one pod during one attempt.
- `pod_claims`: the claims that a pod names, their faults, and the devices that it holds.
- `preparing`: PreFilter.
- `searching`: Filter.
- `rows`: answers about the rows of the cluster, kept from one attempt to the next.
- `findings`: the allocations that one attempt found.
- `binding`: PreBind.
- `conditions`: binding conditions of allocated devices, and their timeouts.
- `writing`: the patches that PreBind sends.
- `releasing`: deallocates devices and undoes writes after a failed attempt.
- `extended`: the special claim of a pod, for extended resources that devices provide.
- `books`: offered and allocated devices, kept from one attempt to the next.
- `tainted_slices`: the slices with the taints of DeviceTaintRules.
- `counts`: counters for the metrics.
"""
