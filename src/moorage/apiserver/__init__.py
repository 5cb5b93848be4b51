"""A Kubernetes API server in memory: a cluster as its clients see it.

A call passes `http`, `server`, `auth`, `rbac`, `routes` and then one verb: `reading`, `writing`,
`applying`, `deleting` or `watching`, or a subresource: `binding`, `eviction`, `scaling`. A small
write passes `connection` instead of `http`. A verb applies the rules of the kind (`moorage.kinds`,
`custom`) and of `admission`, and writes to `moorage.storage`, which feeds the watch streams and
keeps the cluster on disk. Objects are plain dictionaries, as on the wire. Nothing that decides is
shared with the scheduler, so no knowledge of the scheduler can hide a bug here.

Belongs here: the REST protocol and the fields that a real API server adds to objects. Controllers
and node agents have rooms of their own and are API clients like any other.
"""
