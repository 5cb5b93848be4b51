"""The scheduler's configuration: one file in, checked profiles out.

Belongs here: the types of ``KubeSchedulerConfiguration`` (v1) and of the plugins' arguments, their
defaults, strict reading with every fault listed, and the merge of a user's plugin lists with the
default ones. Building plugins belongs to ``framework``; which plugin implements which extension
point is told to this room by a callable.

Flow: `load` (text to plain values, `strict` to structs, `validation`) -> `merge` -> framework.
"""
