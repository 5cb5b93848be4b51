"""Explains where a pod is on its way, why it has no node, and which single changes would help.

Belongs here: pure functions from the deciding half of a scheduler (`service.core.Core`) and a pod
to an `Explanation`. Does not belong here: reading files or servers, and text for people, which is
`cli`'s; second implementations of filters, because every statement comes from a trial with the
plugins themselves. Nothing here changes a decision: a trial undoes what it changed, and random
streams continue where they were.

- `explaining`: the whole answer; `question`: the same, asked over HTTP.
- `answer`: its parts, as data.
- `standing`: where the pod is on its way: held, at Permit, being bound; `turns`: in the queue.
- `rejections`: a plugin's rejection of some nodes (from `engine.inquiry`), and what is asked of it.
- `emptied`: the rejections that remain when the pods of a node are taken off.
- `causes`: the cause, from the two.
- `facts`: what a plugin's rejection is about, in words, and amounts; `node_facts`, `pod_facts`,
  `volumes` and `devices`: the same by subject; `words`: amounts, taints and terms as text.
- `parts`: the parts of a pod that are at fault, by asking about each alone.
- `waiting`: the rejections that waiting may cure; `offers`: resources that are not offered now.
- `staying`: the pods that an emptied node keeps.
- `sentences`: the sentence about a pod that no node takes, and about a group.
- `groups`: whether the pod's group fits together.
- `nodes`: the table of nodes; `chosen`: why a bound pod is on its node.
- `patches`, `trying`: a changed pod, and the nodes that would take it.
- `suggestions`: the single changes that are tried.
"""
