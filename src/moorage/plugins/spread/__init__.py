"""Topology spread: matching pods are spread evenly over domains.

- `pod_topology_spread`: the plugin PodTopologySpread.
- `constraints`: a pod's constraints, compiled.
- `defaults`: constraints for pods that bring none.
- `layout`: the rows that count, and the domain of each row.
- `skew`: the skew of domains, for Filter and Score.
"""
