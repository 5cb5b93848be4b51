"""Kinds that clients define: from a CustomResourceDefinition to a served `Kind`.

Place in the flow: `definitions` hears of every definition written and puts its kinds into the
catalog; from there the verbs serve them like any other kind. `structural` says which schemas can
be served, `pruning` and `validation` apply one to an object, `columns` prints it.
"""
