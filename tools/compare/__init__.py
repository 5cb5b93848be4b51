"""Compares schedulers on one API server: ``python -m tools.compare --help``.

Any scheduler that takes kube-scheduler's flags can be compared. The API server is one of your own,
and has nothing else to do: with etcd, kube-apiserver and kube-scheduler of a release of Kubernetes,
the figures of docs/performance.md can be measured anew on any machine.

- ``drained``: one measurement, from the start of a scheduler to its last binding.
- ``__main__``: the command, and its table.
"""
