"""In-tree plugins, by subject; a plugin's module carries the plugin's own name.

Plugins decide on which nodes a pod may run, and score nodes. A plugin uses the contracts of
`framework` and the columns of `snapshot`, and never another plugin. Only `in_tree` names all
plugins. Each folder's docstring lists its modules.

- `in_tree`: the map of names to plugins, from which the registry is built.
- `from_outside`: plugins of packages and of files, added to a configuration.
- `queue`: which pods enter the queue, and the order in which they leave it.
- `nodes`: node names, labels, taints, ports, images and declared features.
- `resources`: CPU, memory, extended resources, and scores by their use.
- `volumes`: claims, volumes, storage classes and attach limits.
- `claims`: devices of dynamic resource allocation.
- `gpu_share`: whole GPUs and shares of one, and the policies that place them.
- `numa`: NUMA nodes that have what a pod requests.
- `load`: scores by what nodes really use.
- `spread`: topology spread constraints.
- `affinity`: affinity and anti-affinity between pods.
- `preemption`: evicting pods of lower priority.
- `quotas`: elastic quotas of namespaces.
- `gangs`: pod groups that are placed together.
- `binding`: the write that binds a pod.

Modules of several subjects stay next to `in_tree`:

- `answers`: answers cached by pod shape, and by the sets of a node's values.
- `pod_changes`: pods that came to nodes or left them, by node.
- `pod_hints`: functions on pods that the hints of several plugins share.
- `running_sums`: count columns summed over groups of rows.
"""
