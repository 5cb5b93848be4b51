"""Deciding: (pod, snapshot, profile) to `Decision`, synchronous and pure.

No clock is read and nothing is written. `cycle` is the table of contents: PreFilter, Filter,
PostFilter, PreScore, Score, select. It asks plugins through `answers`. `search` is what filtering
found, and why not; `sampling` and `select_node` narrow the nodes and break ties; `evaluation`
tells everything about one pod. In packages: ``filters``, ``reuse``, ``trials``, ``groups`` and
``extenders``.
"""
