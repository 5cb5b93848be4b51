"""Functions on new, changed and deleted pods that the hints of several plugins share."""

from __future__ import annotations

from moorage.api.pod import Pod


def own_update_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    """Queue a pod when the pod itself changed."""
    del old
    return isinstance(new, Pod) and new.uid == waiting.uid


def holds_place(pod: Pod) -> bool:
    """Whether a pod uses room on a node: the pod is placed there, or nominated to the node."""
    return bool(pod.spec.node_name or pod.status.nominated_node_name)
