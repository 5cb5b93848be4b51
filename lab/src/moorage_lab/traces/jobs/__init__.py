"""Jobs of several pods, and the traces that have them.

- `laws`: how long jobs run, and when they come over a day.
- `labels`: how pods name their job. `members`: when all pods of a job run.
- `figures`: completion time, slowdown, group wait, fairness, GPU hours.
- `swf`: jobs of the Standard Workload Format.
"""
