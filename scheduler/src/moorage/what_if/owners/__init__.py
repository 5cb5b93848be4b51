"""The controllers of pods in a model: what they make, what they make again, what they delete.

Each uses the planner of the controller (`moorage.workloads`), and puts pods as bounds allow.

- `workloads`: Deployments and their like; it has the other two, `stateful_sets` and `jobs`.
- `deletions`: objects with everything they own, and namespaces.
- `protection`: objects that are in use while they are being deleted.
"""
