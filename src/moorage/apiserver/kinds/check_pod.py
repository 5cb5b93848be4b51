"""Rules of pods and pod templates as a whole, and of changes to pods.

Place in the flow: validation of pods, and of the templates in workloads. Mirrors kubernetes v1.36
pkg/apis/core/validation/validation.go: ValidatePodSpec, ValidatePodUpdate and
ValidatePodStatusUpdate.
"""

from __future__ import annotations

import copy
from functools import lru_cache
from typing import Any

import msgspec

from moorage.api.names import dns_label_faults, dns_subdomain_faults
from moorage.apiserver.kind import FieldError, Obj, forbidden, invalid, not_supported, required
from moorage.apiserver.kinds.check_container import check_containers, check_volumes
from moorage.apiserver.kinds.check_resources import (
    NOT_NEGATIVE,
    check_pod_level_resources,
    check_quantity,
)
from moorage.apiserver.kinds.check_scheduling import (
    check_affinity,
    check_gates,
    check_spread,
    check_tolerations,
)
from moorage.apiserver.kinds.metadata import check_labels
from moorage.apiserver.kinds.tree import Json, child, number, objects, text

INT32_MAX = 2**31 - 1

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(dict).decode

_CLOSED: dict[str, tuple[str, ...]] = {
    "restartPolicy": ("Always", "Never", "OnFailure"),
    "dnsPolicy": ("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"),
    "preemptionPolicy": ("Never", "PreemptLowerPriority"),
}
_GATED_NODE = "cannot be set until all schedulingGates have been cleared"
_UPDATE = (
    "pod updates may not change fields other than `spec.containers[*].image`,"
    "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` "
    "(allow it to be set to 1 if it was previously negative)"
)


def check_pod(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a pod, and its change if there is an old pod."""
    spec = child(new, "spec")
    if old is None:
        faultless = _is_faultless(_encode(spec))
        errors = [] if faultless else check_pod_spec(spec, "spec")
        return errors + _check_gated_node(spec)
    if spec == child(old, "spec"):
        return []
    errors = check_pod_spec(spec, "spec")
    return errors + _check_update(spec, child(old, "spec"))


# Thousands of pods come from few templates, so the specs of many pods are equal to the byte.
@lru_cache(maxsize=1024)
def _is_faultless(encoded_spec: bytes) -> bool:
    return not check_pod_spec(_decode(encoded_spec), "spec")


def check_pod_spec(spec: Json, field: str) -> list[FieldError]:
    """Check the spec of a pod or of a pod template."""
    errors = check_volumes(objects(spec, "volumes"), f"{field}.volumes")
    errors += check_containers(spec, field)
    for name, allowed in _CLOSED.items():
        value = text(spec, name)
        if value and value not in allowed:
            errors.append(not_supported(f"{field}.{name}", value, allowed))
    errors += _check_names(spec, field)
    errors += _check_numbers(spec, field)
    errors += check_labels(spec.get("nodeSelector"), f"{field}.nodeSelector")
    errors += check_affinity(child(spec, "affinity"), f"{field}.affinity")
    errors += check_tolerations(objects(spec, "tolerations"), f"{field}.tolerations")
    constraints = objects(spec, "topologySpreadConstraints")
    errors += check_spread(constraints, f"{field}.topologySpreadConstraints")
    errors += check_gates(spec, f"{field}.schedulingGates")
    errors += check_pod_level_resources(spec, f"{field}.resources")
    for name, value in child(spec, "overhead").items():
        errors += check_quantity(value, f"{field}.overhead[{name}]")
    return errors + _check_claims(spec, field)


def _check_names(spec: Json, field: str) -> list[FieldError]:
    errors = []
    for name, rule in (
        ("nodeName", dns_subdomain_faults),
        ("serviceAccountName", dns_subdomain_faults),
        ("priorityClassName", dns_subdomain_faults),
        ("runtimeClassName", dns_subdomain_faults),
        ("hostname", dns_label_faults),
        ("subdomain", dns_label_faults),
    ):
        value = text(spec, name)
        if value:
            errors += [invalid(f"{field}.{name}", value, fault) for fault in rule(value)]
    return errors


def _check_numbers(spec: Json, field: str) -> list[FieldError]:
    errors = []
    deadline = spec.get("activeDeadlineSeconds")
    if deadline is not None and not 1 <= deadline <= INT32_MAX:
        detail = f"must be between 1 and {INT32_MAX}, inclusive"
        errors.append(invalid(f"{field}.activeDeadlineSeconds", deadline, detail))
    grace = number(spec, "terminationGracePeriodSeconds")
    if grace < 0:
        errors.append(invalid(f"{field}.terminationGracePeriodSeconds", grace, NOT_NEGATIVE))
    return errors


def _check_claims(spec: Json, field: str) -> list[FieldError]:
    errors = []
    seen: set[str] = set()
    for index, claim in enumerate(objects(spec, "resourceClaims")):
        where = f"{field}.resourceClaims[{index}]"
        name = text(claim, "name")
        if not name:
            errors.append(required(f"{where}.name"))
        elif name in seen:
            errors.append(FieldError("FieldValueDuplicate", f"{where}.name", name))
        seen.add(name)
        sources = [
            key for key in ("resourceClaimName", "resourceClaimTemplateName") if claim.get(key)
        ]
        if not sources:
            detail = "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`"
            errors.append(required(where, detail))
        elif len(sources) > 1:
            detail = "at most one of `resourceClaimName` or `resourceClaimTemplateName` may be set"
            errors.append(invalid(where, claim, detail))
    return errors


def _check_gated_node(spec: Json) -> list[FieldError]:
    if objects(spec, "schedulingGates") and text(spec, "nodeName"):
        return [forbidden("spec.nodeName", _GATED_NODE)]
    return []


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
    known = [text(gate, "name") for gate in objects(old, "schedulingGates")]
    errors = []
    for index, gate in enumerate(objects(spec, "schedulingGates")):
        if text(gate, "name") not in known:
            found = f"found new scheduling gate '{text(gate, 'name')}'"
            detail = f"only deletion is allowed, but {found}"
            errors.append(forbidden(f"spec.schedulingGates[{index}]", detail))
    if known and objects(spec, "schedulingGates"):
        errors += _check_gated_node(spec)
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
    left = [_without_seconds(each) for each in new]
    for each in old:
        kept = _without_seconds(each)
        if kept not in left:
            detail = "existing toleration can not be modified except its tolerationSeconds"
            return [forbidden("spec.tolerations", detail)]
    return []


def _without_seconds(toleration: Json) -> Json:
    return {key: value for key, value in toleration.items() if key != "tolerationSeconds"}


def _check_gated_changes(spec: Json, old: Json, allowed: Json) -> list[FieldError]:
    """While a pod is gated its node selector and required node affinity may be tightened."""
    errors = []
    before, after = child(old, "nodeSelector"), child(spec, "nodeSelector")
    if any(after.get(key) != value for key, value in before.items()):
        detail = "only additions to spec.nodeSelector are allowed (no mutations or deletions)"
        errors.append(invalid("spec.nodeSelector", after, detail))
    _restore(allowed, old, "nodeSelector")
    errors += _check_tightened_affinity(spec, old)
    if child(spec, "affinity") or child(old, "affinity"):
        _restore_node_affinity(allowed, old)
    return errors


_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def _check_tightened_affinity(spec: Json, old: Json) -> list[FieldError]:
    field = f"spec.affinity.nodeAffinity.{_REQUIRED}"
    path = ("affinity", "nodeAffinity", _REQUIRED)
    before = child(old, *path)
    if not before:
        return []
    after = child(spec, *path)
    if not after:
        detail = "cannot be removed while the pod is gated"
        return [forbidden(field, detail)]
    old_terms, new_terms = objects(before, "nodeSelectorTerms"), objects(after, "nodeSelectorTerms")
    where = f"{field}.nodeSelectorTerms"
    if len(old_terms) != len(new_terms):
        detail = "no additions/deletions to non-empty NodeSelectorTerms list are allowed"
        return [invalid(where, new_terms, detail)]
    errors = []
    for index, (was, now) in enumerate(zip(old_terms, new_terms, strict=True)):
        if not _tightens(was, now):
            detail = "only additions are allowed (no mutations or deletions)"
            errors.append(invalid(f"{where}[{index}]", now, detail))
    return errors


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
    """Restore the old required node affinity, so that only the other fields are compared."""
    before = child(old, "affinity", "nodeAffinity").get(_REQUIRED)
    affinity = allowed.get("affinity") or {}
    node = affinity.get("nodeAffinity") or {}
    node.pop(_REQUIRED, None)
    if before is not None:
        node[_REQUIRED] = before
    if node or child(old, "affinity").get("nodeAffinity") is not None:
        affinity["nodeAffinity"] = node
    else:
        affinity.pop("nodeAffinity", None)
    if affinity or old.get("affinity") is not None:
        allowed["affinity"] = affinity
    else:
        allowed.pop("affinity", None)


def check_pod_status(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a change of a pod's status: its nominated node."""
    nominated = text(new, "status", "nominatedNodeName")
    if not nominated:
        return []
    field = "status.nominatedNodeName"
    errors = [invalid(field, nominated, fault) for fault in dns_subdomain_faults(nominated)]
    before: Any = text(old or {}, "status", "nominatedNodeName")
    if text(new, "spec", "nodeName") and nominated != before:
        detail = "may not be set on pods that are already bound to a node"
        errors.append(forbidden(field, detail))
    return errors


def check_template(template: Json, field: str, *, restart: tuple[str, ...]) -> list[FieldError]:
    """Check the pod template of a workload.

    Parameters
    ----------
    template
        The template.
    field
        Its path.
    restart
        Restart policies the workload allows.
    """
    metadata, spec = child(template, "metadata"), child(template, "spec")
    errors = check_labels(metadata.get("labels"), f"{field}.metadata.labels")
    errors += check_pod_spec(spec, f"{field}.spec")
    policy = text(spec, "restartPolicy")
    if policy in _CLOSED["restartPolicy"] and policy not in restart:
        errors.append(not_supported(f"{field}.spec.restartPolicy", policy, restart))
    if spec.get("activeDeadlineSeconds") is not None and restart == ("Always",):
        detail = "activeDeadlineSeconds in ReplicaSet is not Supported"
        errors.append(forbidden(f"{field}.spec.activeDeadlineSeconds", detail))
    return errors
