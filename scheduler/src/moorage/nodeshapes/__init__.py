"""Shapes of nodes and of what runs on them, as people write them; pure.

Place in the flow: commands and pages read `shapes` and `templates` of nodes, with the sizes of
`instance_types`. The node agent makes nodes of templates. It plays a pod by its `annotations` and
`commands`, and ends it by `stopping`; what-if does the same in a cluster in memory.

What belongs here: what a text, a file or an annotation says about a node or a pod. What does not
belong here: time, and writes.
"""
