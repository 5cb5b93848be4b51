"""Time, randomness, ids, errors and tasks: one source each, so that a run can be replayed.

Belongs here: code that could be a library of its own and does not depend on Kubernetes or
scheduling. Everything else moves up.
"""
