"""A Kubernetes API server in memory: a cluster as its clients see it.

`server` takes each call through one chain of steps. The folders are in the order of the chain:
`wire` (bytes to calls and back), `authentication` (who calls), `rbac` (what the caller may do),
`documents` (discovery and the like), `verbs` and `subresources` (what a call does), `admission` and
`policies` (what has to hold first). `custom` serves definitions of custom resources, `protobuf` is
the second encoding, and `kubelet` answers for the pods of fake nodes. A verb applies the rules of
the kind (`moorage.kinds`) and writes to `moorage_sandbox.storage`, which feeds the watch streams
and keeps the cluster on disk. Objects are plain dictionaries, as on the wire. Nothing that decides
is shared with the scheduler, so no knowledge of the scheduler can hide a bug here.

Belongs here: the REST protocol and the fields that a real API server adds to objects. Controllers
and node agents have rooms of their own and are API clients like any other.
"""
