"""The kinds of dynamic resource allocation: claims, device classes, resource slices.

`served` has the rows of the kinds. `claims`, `slices` and `claim_status` check their parts, with
`shared_rules` and, for expressions in CEL, `selectors`.
"""
