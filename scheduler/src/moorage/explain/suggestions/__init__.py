"""The suggestions: each module knows one kind of change, and tries it before it suggests it.

- `search`: asks all of them, and puts the smallest first.
- `requests`: request less.
- `plugin_offers`: changes that plugins offer, such as a smaller share of a GPU.
- `parts`: tolerate a taint; drop a selector, a term, a constraint, a host port.
- `leaving`: wait for a pod that is leaving, or evict one.
- `scaling`: scale the workload down that such a pod is of.
- `holders`: wait for or evict the pod that has the claim or the devices.
- `nodes`: one more node of a shape that is there, or of a larger instance type.
- `node_changes`: uncordon a node, label it, or take a taint off.
- `priorities`: a PriorityClass with which preemption finds victims; `budgets`: the disruption
  budgets of pods to evict.
- `pairs`: two of these changes, where no single one helps.
- `members`: the members that a group lacks, or a smaller minimum of members.
"""
