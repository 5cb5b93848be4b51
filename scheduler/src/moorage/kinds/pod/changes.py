"""The rules of changes to pods: updates, ``resize`` and ``ephemeralcontainers``.

Mirrors kubernetes v1.36 pkg/apis/core/validation/validation.go (ValidatePodUpdate and its
neighbours) and pkg/registry/core/pod/strategy.go (dropNonResizeUpdates).
"""

from __future__ import annotations

import copy
from typing import Any

from moorage.kinds.kind import FieldError, Obj, forbidden, invalid
from moorage.kinds.pod.admission import qos_class
from moorage.kinds.pod.containers import check_ephemeral_containers
from moorage.kinds.pod.spec import REQUIRED, check_gated_node, check_pod_spec
from moorage.kinds.served import Part
from moorage.kinds.tree import Json, attach, child, number, objects, text

# Resources of a container that may change while the pod runs.
_RESIZABLE = ("cpu", "memory")
_UPDATE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
    "(allow it to be set to 1 if it was previously negative)"
)


def check_pod_change(new: Obj, old: Obj) -> list[FieldError]:
    """Check the new spec of a pod, and what has changed in it."""
    spec = child(new, "spec")
    if spec == child(old, "spec"):
        return []
    return check_pod_spec(spec, "spec") + _check_update(spec, child(old, "spec"))


def _check_update(spec: Json, old: Json) -> list[FieldError]:
    """Accept the changes that a pod's spec allows, and refuse all others."""
    for which in ("containers", "initContainers"):
        if len(objects(spec, which)) != len(objects(old, which)):
            verb = "pod updates may not add or remove containers"
            return [forbidden(f"spec.{which}", verb)]
    errors = _check_new_gates(spec, old)
    errors += _check_deadline(spec, old)
    errors += _check_kept_tolerations(objects(spec, "tolerations"), objects(old, "tolerations"))
    allowed = copy.deepcopy(spec)
    for which in ("containers", "initContainers"):
        for mine, theirs in zip(objects(allowed, which), objects(old, which), strict=True):
            _restore(mine, theirs, "image")
    for name in ("activeDeadlineSeconds", "tolerations", "schedulingGates"):
        _restore(allowed, old, name)
    grace = "terminationGracePeriodSeconds"
    if number(old, grace) < 0 and number(spec, grace) == 1:
        _restore(allowed, old, grace)
    if objects(old, "schedulingGates"):
        errors += _check_gated_changes(spec, old, allowed)
    if allowed != old:
        errors.append(forbidden("spec", _UPDATE))
    return errors


def _restore(target: Json, source: Json, name: str) -> None:
    target.pop(name, None)
    if name in source:
        target[name] = source[name]


def _check_new_gates(spec: Json, old: Json) -> list[FieldError]:
    known = {text(gate, "name") for gate in objects(old, "schedulingGates")}
    errors = []
    for index, gate in enumerate(objects(spec, "schedulingGates")):
        if text(gate, "name") not in known:
            found = f"found new scheduling gate '{text(gate, 'name')}'"
            detail = f"only deletion is allowed, but {found}"
            errors.append(forbidden(f"spec.schedulingGates[{index}].name", detail))
    if known and objects(spec, "schedulingGates"):
        errors += check_gated_node(spec)
    return errors


def _check_deadline(spec: Json, old: Json) -> list[FieldError]:
    before, after = old.get("activeDeadlineSeconds"), spec.get("activeDeadlineSeconds")
    field = "spec.activeDeadlineSeconds"
    if before is None or before == after:
        return []
    if after is None:
        return [invalid(field, after, "must not update from a positive integer to nil value")]
    if after > before:
        detail = "must be less than or equal to previous value"
        return [invalid(field, after, detail)]
    return []


def _check_kept_tolerations(new: list[Json], old: list[Json]) -> list[FieldError]:
    """Every toleration has to stay; its seconds may change, and tolerations may be added."""
    left = {_without_seconds(each) for each in new}
    for each in old:
        if _without_seconds(each) not in left:
            detail = "existing toleration can not be modified except its tolerationSeconds"
            return [forbidden("spec.tolerations", detail)]
    return []


def _without_seconds(toleration: Json) -> frozenset[tuple[str, Any]]:
    """Return the fields of a toleration in a form by which many are found in a table."""
    return frozenset(item for item in toleration.items() if item[0] != "tolerationSeconds")


def _check_gated_changes(spec: Json, old: Json, allowed: Json) -> list[FieldError]:
    """While a pod is gated its node selector and required node affinity may be tightened.

    Preferred node affinity is free.
    """
    errors = []
    before, after = child(old, "nodeSelector"), child(spec, "nodeSelector")
    if any(after.get(key) != value for key, value in before.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        errors.append(invalid("spec.nodeSelector", after, detail))
    _restore(allowed, old, "nodeSelector")
    errors += _check_tightened_affinity(spec, old)
    _restore_node_affinity(allowed, old)
    return errors


def _check_tightened_affinity(spec: Json, old: Json) -> list[FieldError]:
    path = ("affinity", "nodeAffinity", REQUIRED, "nodeSelectorTerms")
    old_terms, new_terms = objects(old, *path), objects(spec, *path)
    where = ".".join(("spec", *path))
    if not old_terms:
        return []
    if len(old_terms) != len(new_terms):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [invalid(where, new_terms, detail)]
    detail = "only additions are allowed (no mutations or deletions)"
    return [
        invalid(f"{where}[{index}]", now, detail)
        for index, (was, now) in enumerate(zip(old_terms, new_terms, strict=True))
        if not _tightens(was, now)
    ]


def _tightens(was: Json, now: Json) -> bool:
    """Whether a term only got longer; an empty term matches nothing and has to stay empty."""
    if not was.get("matchExpressions") and not was.get("matchFields"):
        return not now.get("matchExpressions") and not now.get("matchFields")
    for key in ("matchExpressions", "matchFields"):
        before, after = objects(was, key), objects(now, key)
        if after[: len(before)] != before:
            return False
    return True


def _restore_node_affinity(allowed: Json, old: Json) -> None:
    """Restore the old node affinity, so that only the other fields are compared."""
    before, affinity = child(old, "affinity").get("nodeAffinity"), allowed.get("affinity")
    if child(allowed, "affinity").get("nodeAffinity") == before:
        return
    if affinity is None:
        allowed["affinity"] = {"nodeAffinity": before}
    elif old.get("affinity") is None and set(affinity) == {"nodeAffinity"}:
        del allowed["affinity"]
    else:
        _restore(affinity, child(old, "affinity"), "nodeAffinity")


def _take_resources(stored: Obj, sent: Obj) -> None:
    """Copy the resources of containers, and their names and order, which the check compares."""
    for which in ("containers", "initContainers"):
        mine = {text(each, "name"): each for each in objects(stored, "spec", which)}
        taken = [
            {**mine.get(name, {"name": name}), "resources": each.get("resources") or {}}
            for each in objects(sent, "spec", which)
            if (name := text(each, "name"))
        ]
        if taken:
            stored["spec"][which] = taken


def _check_resources(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a resize (ValidatePodResize)."""
    assert old is not None, "only a stored pod is resized"
    for which in ("containers", "initContainers"):
        before, after = (objects(each, "spec", which) for each in (old, new))
        if len(before) != len(after):
            detail = f"{which} may not be added or removed on resize"
            return [forbidden(f"spec.{which}", detail)]
        if errors := [
            forbidden(
                f"spec.{which}[{index}].name", f"{which} may not be renamed or reordered on resize"
            )
            for index, (was, now) in enumerate(zip(before, after, strict=True))
            if text(was, "name") != text(now, "name")
        ]:
            return errors
    errors = check_pod_spec(child(new, "spec"), "spec")
    if qos_class(new["spec"]) != qos_class(old["spec"]):
        errors.append(forbidden("spec", "Pod QOS Class may not change as a result of resizing"))
    for which in ("containers", "initContainers"):
        pairs = zip(objects(old, "spec", which), objects(new, "spec", which), strict=True)
        for index, (was, now) in enumerate(pairs):
            if child(was, "resources") != child(now, "resources"):
                steady = which == "initContainers" and text(was, "restartPolicy") != "Always"
                where = f"spec.{which}[{index}].resources"
                errors += _check_resized(was, now, where, steady=steady)
    return errors


def _check_resized(was: Json, now: Json, where: str, *, steady: bool) -> list[FieldError]:
    """Check the new resources of a container; those of a ``steady`` container may not change."""
    if steady:
        detail = "resources for non-sidecar init containers are immutable"
        return [forbidden(where, detail)]
    errors = [
        forbidden(f"{where}.{part}", f"resource {part} cannot be removed")
        for part in ("requests", "limits")
        if child(was, "resources", part).keys() - child(now, "resources", part).keys()
    ]
    if _fixed(now) != _fixed(was):
        errors.append(forbidden(where, "only cpu and memory resources are mutable"))
    return errors


def _fixed(container: Json) -> list[Json]:
    """Return the requests and limits that a resize must not change."""
    return [
        {name: value for name, value in amounts.items() if name not in _RESIZABLE}
        for amounts in (child(container, "resources", key) for key in ("requests", "limits"))
    ]


def _take_ephemeral(stored: Obj, sent: Obj) -> None:
    found = objects(sent, "spec", "ephemeralContainers")
    attach(stored, "spec").pop("ephemeralContainers", None)
    if found:
        stored["spec"]["ephemeralContainers"] = found


def _check_ephemeral(new: Obj, old: Obj | None) -> list[FieldError]:
    field, spec = "spec.ephemeralContainers", child(new, "spec")
    errors = check_pod_spec(spec, "spec") + check_ephemeral_containers(spec, "spec")
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


PARTS = {
    "ephemeralcontainers": Part(take=_take_ephemeral, check=_check_ephemeral),
    "resize": Part(take=_take_resources, check=_check_resources),
}
"""Parts of a pod by the name of the subresource."""
