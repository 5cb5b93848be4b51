"""The rules of a pod's status: what a write of the status may change.

Mirrors kubernetes v1.36 pkg/apis/core/validation/validation.go (ValidatePodStatusUpdate), and the
status strategy of pkg/registry/core/pod/strategy.go.
"""

from __future__ import annotations

from moorage.api.names import dns_subdomain_faults, qualified_name_faults
from moorage.kinds.kind import Context, FieldError, Obj, duplicate, forbidden, invalid
from moorage.kinds.metadata import immutable
from moorage.kinds.tree import Json, child, number, objects, text

_NOT_AGAIN = "may not be transitioned to non-terminated state"


def keep_quality(new: Obj, old: Obj, ctx: Context) -> None:
    """Keep the quality of service class where a write of the status leaves it out, in place."""
    quality, status = text(old, "status", "qosClass"), new.get("status")
    if quality and status is not None and not status.get("qosClass"):
        status["qosClass"] = quality


def check_pod_status(new: Obj, old: Obj | None) -> list[FieldError]:
    """Check a change of a pod's status."""
    status, before = child(new, "status"), child(old or {}, "status")
    errors = _check_nominated(new, before)
    quality = text(before, "qosClass")
    if quality and status.get("qosClass") != quality:
        errors.append(immutable("status.qosClass", status.get("qosClass")))
    known = {text(each, "type") for each in objects(before, "conditions")}
    for index, each in enumerate(objects(status, "conditions")):
        kind = text(each, "type")
        if kind not in known:
            # The path is upstream's.
            where = f"metadata.conditions[{index}].Type"
            errors += [invalid(where, kind, fault) for fault in qualified_name_faults(kind)]
    spec = child(new, "spec")
    errors += _check_states(status, before, spec)
    return errors + _check_claims(status, spec)


def _check_nominated(new: Obj, before: Json) -> list[FieldError]:
    nominated, field = text(new, "status", "nominatedNodeName"), "status.nominatedNodeName"
    if not nominated or nominated == text(before, "nominatedNodeName"):
        return []
    errors = [invalid(field, nominated, fault) for fault in dns_subdomain_faults(nominated)]
    if text(new, "spec", "nodeName"):
        detail = "may not be set on pods that are already bound to a node"
        errors.append(forbidden(field, detail))
    return errors


def _check_states(status: Json, before: Json, spec: Json) -> list[FieldError]:
    """Refuse to start a container again that has ended and may not be restarted."""
    policy = text(spec, "restartPolicy")
    sidecars = {
        text(each, "name")
        for each in objects(spec, "initContainers")
        if text(each, "restartPolicy") == "Always"
    }
    errors = []
    for key, restart in (
        ("containerStatuses", policy),
        ("initContainerStatuses", policy),
        # The kubelet never restarts an ephemeral container.
        ("ephemeralContainerStatuses", "Never"),
    ):
        if restart == "Always" or not before.get(key):
            continue
        running = {
            text(each, "name")
            for each in objects(status, key)
            if child(each, "state").get("terminated") is None
        }
        for index, each in enumerate(objects(before, key)):
            ended, name = child(each, "state").get("terminated"), text(each, "name")
            failed = restart == "OnFailure" and number(ended or {}, "exitCode") != 0
            sidecar = key == "initContainerStatuses" and name in sidecars
            if ended is not None and name in running and not failed and not sidecar:
                errors.append(forbidden(f"status.{key}[{index}].state", _NOT_AGAIN))
    return errors


def _check_claims(status: Json, spec: Json) -> list[FieldError]:
    errors = []
    claim_names: set[str] = set()
    names = {text(each, "name") for each in objects(spec, "resourceClaims")}
    for index, each in enumerate(objects(status, "resourceClaimStatuses")):
        where, name = f"status.resourceClaimStatuses[{index}].name", text(each, "name")
        if name not in names:
            detail = "must match the name of an entry in `spec.resourceClaims`"
            errors.append(invalid(where, name, detail))
        if name in claim_names:
            errors.append(duplicate(where, name))
        claim_names.add(name)
        claim = each.get("resourceClaimName")
        if claim is not None:
            errors += [invalid(where, claim, fault) for fault in dns_subdomain_faults(claim)]
    return errors
