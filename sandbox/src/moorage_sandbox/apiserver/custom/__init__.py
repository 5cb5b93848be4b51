"""Kinds that clients define: from a CustomResourceDefinition to a served `Kind`.

Place in the flow: `definitions` is told of every definition written and puts its kinds into the
catalog. The verbs then serve these kinds like any other kind. `structural` checks whether a schema
can be served, and `converter` has a webhook convert objects between versions.
`moorage.kinds.custom` has the kinds, and `moorage_sandbox.rules` their rules in CEL.
"""
