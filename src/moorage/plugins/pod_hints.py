"""What the hints of several plugins ask about a pod that came, changed or went."""

from __future__ import annotations

from moorage.api.pod import Pod


def own_update_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    """Queue a pod when it changed itself."""
    del old
    return isinstance(new, Pod) and new.uid == waiting.uid


def holds_place(pod: Pod) -> bool:
    """Whether a pod takes room on a node: it is there, or nominated to it."""
    return bool(pod.spec.node_name or pod.status.nominated_node_name)
