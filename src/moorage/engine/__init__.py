"""Deciding: (attempt, snapshot, profile) to `Decision`, synchronous and pure.

No clock is read and nothing is written. `cycle` is the table of contents; `filtering` and
`scoring` run the plugins over rows; `shape_cache` reuses their answers for replicas and may never
change a decision; `select_node` breaks ties; `evaluation` tells everything about one pod.
"""
