"""What a pod asks for that no plugin of moorage can judge yet.

Such a pod is held with a clear message instead of being placed wrongly. One table: plugin to the
fields of a pod that need it. When a plugin is built, its entry goes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from moorage.api.pod import Pod
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import PartKind

FieldFinder = Callable[[Pod], str | None]
"""A pod to the field that needs the plugin, as a path in the pod; None when none does."""


def _claims_field(pod: Pod) -> str | None:
    return "spec.resourceClaims" if pod.spec.resource_claims else None


NEEDED_BY: Final[Mapping[str, FieldFinder]] = {
    "DynamicResources": _claims_field,
}
"""By plugin name, in the order the plugins run; empty once all are built."""


def unbuilt_need(plugin: str, pod: PodInfo) -> str | None:
    """Return why a pod cannot be judged by a plugin not built yet, for people; None if it can."""
    field = pod.part(NEEDS).value.get(plugin)
    if field is None:
        return None
    return (
        f"moorage does not implement {plugin} yet: pod uses {field}; "
        "leave the field out, or let kube-scheduler schedule this pod"
    )


def unbuilt_needs(pod: Pod) -> dict[str, str]:
    """Return every plugin not built that a pod needs, with the field that needs it."""
    found = {plugin: find(pod) for plugin, find in NEEDED_BY.items()}
    return {plugin: field for plugin, field in found.items() if field is not None}


NEEDS: Final[PartKind[Mapping[str, str]]] = PartKind(
    "unbuilt", unbuilt_needs, unbuilt_needs, within_spec=True
)
"""`unbuilt_needs` as a part of a pod's shape."""
