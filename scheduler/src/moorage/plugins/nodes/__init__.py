"""Plugins for properties of a node: name, labels, taints, ports, images and features.

- `node_name`: the plugin NodeName.
- `node_unschedulable`: the plugin NodeUnschedulable.
- `node_affinity`: the plugin NodeAffinity.
- `taint_toleration`: the plugin TaintToleration.
- `node_ports`: the plugin NodePorts.
- `node_declared_features`: the plugin NodeDeclaredFeatures.
- `image_locality`: the plugin ImageLocality.
- `terms`: node selectors evaluated over all rows at once.
"""
