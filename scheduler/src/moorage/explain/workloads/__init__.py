"""Answers about what people ask about: workloads, groups, pods by label, nodes, claims, namespaces.

Belongs here: pure functions from the deciding half of a scheduler and manifests of owners to an
`ObjectExplanation`. Each statement about pods comes from the explanation of one pod of each class
of equal pods, so nothing here judges nodes by itself.

- `explaining`: the whole answer; `question`: the same, asked over HTTP; `asking`: which answer a
  question gets; `answer`: the question and the parts of its answer.
- `owners`: the pods of an owner; `wanted`: how many pods an owner wants.
- `creation`: why pods are not created; `quotas`: whether quotas refuse them.
- `stages`: where each pod is; `classes`: pods that are explained by one of them.
- `placing`: how many pods get a node, on trial; `changes`: the suggestions, with commands.
"""
