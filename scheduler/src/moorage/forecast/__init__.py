"""Estimates of starts from a scheduler's state, next to its loop.

- `start_model` makes a queue in short of a cluster in memory; Filters say which nodes are open.
- `drawing` lets it roll out for some milliseconds.

Does not belong here: laws and roll-outs themselves (`moorage.estimates`), and the process that
answers (`moorage.what_if`).
"""
