"""Plugins for volumes: whether a node reaches, binds, provisions and attaches a pod's volumes.

- `volume_binding`: the plugin VolumeBinding.
- `volume_restrictions`: the plugin VolumeRestrictions.
- `volume_zone`: the plugin VolumeZone.
- `node_volume_limits`: the plugin NodeVolumeLimits.
- `capacity_scores`: scores by the share of a node's storage that a pod's claims would use.
- `claims`: claims, volumes and storage classes as all four plugins read them.
- `finder`: volumes for a pod's claims, on every node at once.
- `free`: unbound volumes by class, and the best one for each node.
- `nodes`: the nodes that can reach a volume, a class or a piece of storage capacity.
- `assumed`: volumes and claims as decided, before the API shows them.
- `writes`: the API writes that bind a pod's volumes.
- `hints`: the events that may cure a rejection of VolumeBinding.
- `installed`: the nodes that lack a CSI driver.
- `resolver`: driver and handle of each volume of a pod.
- `attached`: volumes that count against the attach limits of a node.
- `translation`: in-tree volumes as the CSI volumes that replaced them.
"""
