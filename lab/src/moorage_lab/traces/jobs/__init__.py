"""Jobs of several pods, and the traces that have them.

- `swf`: jobs of the Standard Workload Format.
"""
