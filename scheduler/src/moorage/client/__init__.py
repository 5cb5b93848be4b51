"""Speaking to an API server: verbs (bind, evict, patch status, emit Event) and list+watch.

Belongs here: how a call is built, authenticated, sent, retried and read. Decisions do not: the
room knows pods and nodes only as things that have paths and versions, so it is tested with bytes
and a scripted transport. The room never imports the embedded API server, a peer like any other.
"""
