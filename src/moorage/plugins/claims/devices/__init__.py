"""The structured allocator: finds the devices for a pod's claims on a node.

Charter: pure functions over resource slices, device classes and claims; no plugin, no API call, no
clock of its own. The plugin DynamicResources asks it in Filter and writes what it answers in
PreBind.

`inventory` holds the slices as parsed once, `pools` what of them a node sees, `cel` and
`selecting` the selectors, `requests` a claim as the search reads it, `allocator` the search and
its rules, `results` an allocation as the API writes it, `grouping` one search for many nodes,
`allocated` what other claims hold.

Rules: kubernetes v1.36 ``dynamic-resource-allocation/structured``, the variant its default
feature gates select ("incubating").
"""
