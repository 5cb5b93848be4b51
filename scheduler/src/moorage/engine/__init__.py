"""Deciding: (pod, snapshot, profile) to `Decision`, synchronous and pure.

No clock is read and nothing is written. `cycle` is the table of contents: PreFilter, Filter,
PostFilter, PreScore, Score, select. It asks plugins through `answers`. `search` holds the feasible
rows, or the reasons without one. `sampling` and `select_node` narrow the nodes and break ties.
`inquiry` asks every plugin about one pod, for every node; `evaluation` puts what the cycle finds
next to it. In packages: ``filters``, ``reuse``, ``trials``, ``groups``, ``extenders``, ``notes``.
"""
