"""Deciding: (pod, snapshot, profile) to `Decision`, synchronous and pure.

No clock is read and nothing is written. `cycle` is the table of contents: PreFilter, Filter,
PostFilter, PreScore, Score, select. It asks plugins through `answers`. `search` holds the feasible
rows, or the reasons without one. `sampling` and `select_node` narrow the nodes and break ties.
`evaluation` asks every plugin about one pod. In packages: ``filters``, ``reuse``, ``trials``,
``groups``, ``extenders`` and ``notes``.
"""
