"""In-tree plugins: one opinion a file, named as in kube-scheduler.

Belongs here: what decides where a pod may go and how good a node is. Plugins know the contracts
of `framework` and the columns of `snapshot`, and never each other; only `in_tree` names them all.
Shared by several plugins, and no plugins themselves: `answers` (answers kept by set and by shape),
`node_terms` (node selectors over label columns), `resource_scoring` (ratios of use to capacity),
`device_classes` (which devices an extended resource means).
"""
