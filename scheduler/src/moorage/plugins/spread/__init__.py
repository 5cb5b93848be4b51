"""Topology spread: matching pods are spread evenly over domains.

- `pod_topology_spread`: the plugin PodTopologySpread.
- `constraints`: a pod's constraints, compiled.
- `defaults`: constraints for pods without constraints of their own.
- `layout`: the counted rows, and the domain of each row.
- `skew`: the skew of domains, for Filter and Score.
"""
