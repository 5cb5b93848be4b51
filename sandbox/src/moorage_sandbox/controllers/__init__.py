"""The controllers that a sandbox needs so that workloads live and end as in a real cluster.

Belongs here: what kube-controller-manager and a storage driver do. The room knows the API server
only through `moorage.client`, so it works against any. Pure functions decide the next writes
(`moorage.workloads`, and ``autoscaler_metrics`` and ``owner_graph`` here). The other modules watch
and write, on the base that `moorage.controllers` gives every controller:

- ``cluster`` lists the parts, which share one watch of each kind.
- ``workloads`` has the controllers of workloads, nodes and namespaces: ``deployment``,
  ``replica_set``, ``stateful_set``, ``daemon_set``, ``job``, ``autoscaler``, ``node_life``,
  ``accounts``, ``endpoints``, and the garbage collector (``garbage``). Each of them has a queue of
  keys. They share ``pod_control``, ``revisions`` and ``expectations``.
- ``volumes`` binds and makes volumes, and protects those in use (``claim_users``). ``disruption``
  keeps the status of budgets. These two work in rounds over what has changed
  (``changed_objects``).
"""
