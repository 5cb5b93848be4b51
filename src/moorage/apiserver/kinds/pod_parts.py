"""Parts of a pod with a subresource of their own: resources, and ephemeral containers.

Place in the flow: rows of the kind of pods. Mirrors kubernetes v1.36
pkg/registry/core/pod/strategy.go (dropNonResizeUpdates, dropNonEphemeralContainerUpdates) and
pkg/apis/core/validation (ValidatePodResize, ValidatePodEphemeralContainersUpdate).
"""

from __future__ import annotations

from moorage.apiserver.kind import FieldError, Obj, forbidden
from moorage.apiserver.kinds.check_pod import check_pod_spec
from moorage.apiserver.kinds.pod_admission import qos_class
from moorage.apiserver.kinds.served import Part
from moorage.apiserver.kinds.tree import Json, attach, child, objects, text

# Resources of a container that may change while the pod runs.
_RESIZABLE = frozenset({"cpu", "memory"})


def _take_resources(kept: Obj, sent: Obj) -> None:
    """Copy the resources of the containers that both pods have."""
    for which in ("containers", "initContainers"):
        wanted = {text(each, "name"): each for each in objects(sent, "spec", which)}
        for mine in objects(kept, "spec", which):
            theirs = wanted.get(text(mine, "name"))
            if theirs is not None:
                mine["resources"] = theirs.get("resources") or {}


def _check_resources(new: Obj, old: Obj | None) -> list[FieldError]:
    assert old is not None, "only a stored pod is resized"
    errors = check_pod_spec(child(new, "spec"), "spec")
    if qos_class(new["spec"]) != qos_class(old["spec"]):
        errors.append(forbidden("spec", "Pod QOS Class may not change as a result of resizing"))
    for which in ("containers", "initContainers"):
        pairs = zip(objects(new, "spec", which), objects(old, "spec", which), strict=True)
        for index, (after, before) in enumerate(pairs):
            if _fixed(after) != _fixed(before):
                where = f"spec.{which}[{index}].resources"
                errors.append(forbidden(where, "only cpu and memory resources are mutable"))
    return errors


def _fixed(container: Json) -> list[Json]:
    """Return the requests and limits that a resize must not change."""
    return [
        {name: value for name, value in amounts.items() if name not in _RESIZABLE}
        for amounts in (child(container, "resources", key) for key in ("requests", "limits"))
    ]


def _take_ephemeral(kept: Obj, sent: Obj) -> None:
    found = objects(sent, "spec", "ephemeralContainers")
    attach(kept, "spec").pop("ephemeralContainers", None)
    if found:
        kept["spec"]["ephemeralContainers"] = found


def _check_ephemeral(new: Obj, old: Obj | None) -> list[FieldError]:
    field = "spec.ephemeralContainers"
    errors = check_pod_spec(child(new, "spec"), "spec")
    after = {text(each, "name"): each for each in objects(new, *field.split("."))}
    for before in objects(old or {}, *field.split(".")):
        name = text(before, "name")
        if name not in after:
            detail = f'existing ephemeral containers "{name}" may not be removed'
            errors.append(forbidden(field, detail))
        elif after[name] != before:
            detail = f'existing ephemeral containers "{name}" may not be changed'
            errors.append(forbidden(field, detail))
    return errors


POD_PARTS = {
    "ephemeralcontainers": Part(take=_take_ephemeral, check=_check_ephemeral),
    "resize": Part(take=_take_resources, check=_check_resources),
}
"""Parts of a pod by the name of the subresource."""
