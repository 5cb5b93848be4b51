"""Time, randomness, ids, errors and tasks: one source each, or nothing above can be replayed.

Belongs here: what could be a library of its own and knows nothing of Kubernetes or scheduling.
Everything else moves up.
"""
