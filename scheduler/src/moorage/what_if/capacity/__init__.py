"""How many more pods fit, by shape of pod and of node.

- `count` fills a model, `group_filling` does so with groups, and `room` has the answer.
- `shapes` lists the nodes that are worth a try.
"""
