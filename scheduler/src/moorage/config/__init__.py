"""The scheduler's configuration: one file in, checked profiles out.

Belongs here: the types of ``KubeSchedulerConfiguration`` (v1) and of the plugins' arguments, and
their defaults. Files are read strictly, with every fault listed, and a user's plugin lists are
merged with the default ones. Building plugins belongs to ``framework``; a callable tells this room
which plugin implements which extension point.

Flow: `load` (text to plain values, `strict` to structs, `validation`) -> `merge` -> framework.
"""
