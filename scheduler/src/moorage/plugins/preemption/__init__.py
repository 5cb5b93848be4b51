"""Preemption: evicting pods of lower priority so that a pod, or a group, fits.

- `default_preemption`: the plugin DefaultPreemption.
- `preemption_toleration`: the plugin PreemptionToleration.
- `evaluator`: the steps that all preemption plugins share.
- `search`: the nodes to try, their order, and the choice between candidates.
- `dry_runs`: dry runs on nodes, on many nodes at once if the nodes are independent.
- `victims`: the victims on one node, found one node at a time.
- `sums`: the victims on many independent nodes at once.
- `known_rows`: results of dry runs, kept for replicas of the preemptor.
- `group`: victims for a whole pod group.
- `preemption_counts`: numbers for metrics.
- `budgets`: which evictions violate a PodDisruptionBudget.
"""
