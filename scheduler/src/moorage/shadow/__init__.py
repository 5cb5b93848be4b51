"""Decides next to the scheduler of a live cluster, writes nothing, and reports how they compare.

Watch events come in from `watching`, the one module here that awaits, by way of `feed`. `replay`
puts bindings into the order in which the pods were popped (`queue_order`). `decision_comparer`
holds the cluster as it really is: for each pod that the real scheduler binds it decides on the
state before that binding (`deciding`). `moments` says whether another moment explains a difference.
`left_pending` compares the pods that get no node. `shadow_cluster` lets the decisions of the
configuration accumulate in a model of their own, and `fullness` says how full both are.
`comparison` and `report` are the types that programs read. How it looks on a terminal is in
`moorage.cli.shadow`.
"""
