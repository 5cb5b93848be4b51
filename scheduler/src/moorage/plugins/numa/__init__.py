"""NUMA: nodes whose topology manager places the resources of a pod on single NUMA nodes.

- `node_resource_topology_match`: the plugin NodeResourceTopologyMatch.
- `zones`: one NodeResourceTopology in numbers, and the rules of its kubelet.
- `zone_columns`: the zones of all nodes as arrays.
- `assumed_zones`: topologies that lag behind the scheduler, and what it assumes meanwhile.
- `fingerprints`: by which pods a topology says that it has counted them.
- `requests`: what the containers of a pod request of a NUMA node.
- `alignment`: whether one NUMA node has what a container, or the pod, requests.
- `allocation_scores`: scores by what is left on the NUMA nodes.
- `fewest_zones`: scores by how many NUMA nodes the pod needs.
"""
