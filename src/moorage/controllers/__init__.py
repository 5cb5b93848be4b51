"""The controllers a sandbox needs so that workloads live and end as they would; API clients.

Belongs here: what kube-controller-manager and a storage driver would do. It knows the API server
only through `moorage.client`, and works against any. What is to be done is decided by pure
functions (``*_steps``, ``deployment_status``, ``job_pods``, ``owner_graph``), the modules beside
them watch and write:

- ``workloads`` runs the controllers of workloads, nodes and namespaces over one set of watches
  (``views``), each with a queue of keys (``controller``, ``work_queue``): ``deployment``,
  ``replica_set``, ``stateful_set``, ``daemon_set``, ``job``, ``node_life``, ``accounts``, and
  the garbage collector (``garbage``). What they have in common is in ``pod_control``, ``pods``,
  ``revisions``, ``expectations`` and ``event_budget``.
- ``volumes`` binds and makes volumes; ``disruption`` keeps the status of budgets, ``pod_groups``
  that of pod groups.
"""
