"""Controllers: each brings the objects of a kind to their wanted state.

Belongs here: what every controller needs, and the controllers that a cluster with moorage needs
next to kube-controller-manager. The room knows the API server only through `moorage.client`. The
controllers of kube-controller-manager are in the sandbox, on the same base.

- ``controller`` is the base: a queue of keys (``work_queue``) and workers that empty it, over one
  watch of each kind (``views``), with a limit of Events for each object (``event_budget``).
- ``cluster`` runs the controllers of a program, part by part.
- ``pod_groups`` and ``elastic_quotas`` keep the status of scheduler-plugins' kinds. ``groups`` is
  the part with both, for ``moorage group-controller``.
"""
