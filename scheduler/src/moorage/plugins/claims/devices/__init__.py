"""The structured allocator: finds the devices for a pod's claims on a node.

Charter: pure functions over resource slices, device classes and claims; no plugin, no API call and
no clock. DynamicResources calls the allocator in Filter and writes its allocations in PreBind.

- `inventory` and `offered`: the parsed slices and their devices.
- `pools`: the pools that one node sees.
- `cel` and `selecting`: selectors, taints and constraints.
- `requests`: compiled claims.
- `allocator`: allocations for the nodes of one cycle.
- `search`: the search on one node.
- `grouping`: one search for many nodes.
- `counters` and `capacity`: shared counters and consumable capacity.
- `results`: an allocation as the API writes it.
- `allocated`: the devices of other claims.
- `holdings`: the devices that a bound pod holds, for people.
- `contract`: ids, features and errors.

Rules: kubernetes v1.36 ``dynamic-resource-allocation/structured``, the variant its default
feature gates select ("incubating").
"""
