"""``moorage bench start``: what the start of a scheduler costs next to a cluster that runs.

- `result`: the size of a measurement, and what was measured.
- `run`: one measurement.

The server is that of ``moorage bench path``.
"""
