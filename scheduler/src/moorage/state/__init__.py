"""Beliefs of the scheduler: pods that wait, pods that run, and the history of each.

Belongs here: the scheduling queue, the cache of assumed and bound pods, the nominations, the one
table of a pod's lifecycle, and every pod's history. Synchronous, no I/O, no plugins: ordering,
PreEnqueue and requeue hints come in as callables. Only ``service`` may change state here.

Does not belong here: judging nodes (``engine``, ``plugins``), arrays (``snapshot``), awaiting.
"""
