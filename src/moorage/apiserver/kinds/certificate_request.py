"""CertificateSigningRequest: a request for a certificate, with its approval or denial.

Place in the flow: a row of `moorage.apiserver.kinds.registry`. Nothing here signs. Mirrors
kubernetes v1.36 pkg/registry/certificates/certificates/strategy.go and
pkg/apis/certificates/validation.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

from moorage.api.resources import ResourceType
from moorage.apiserver.built_in import resource_type
from moorage.apiserver.kind import Column, Context, FieldError, Obj, invalid, required
from moorage.apiserver.kinds.cells import AGE, NAME, NONE, age, human_duration, name_of
from moorage.apiserver.kinds.metadata import immutable
from moorage.apiserver.kinds.name_rules import path_segment_name
from moorage.apiserver.kinds.served import Part, ServedKind
from moorage.apiserver.kinds.tree import attach, child, items, number, objects, text

_PEM_HEAD = b"-----BEGIN CERTIFICATE REQUEST-----"
_SECONDS_MIN = 600
_COLUMNS = (
    NAME,
    AGE,
    Column("SignerName", description="Signer that the request is meant for"),
    Column("Requestor", description="User who made the request"),
    Column("RequestedDuration", description="How long the certificate should be valid"),
    Column("Condition", description="Whether the request is approved, denied, issued or failed"),
)


def _prepare(obj: Obj, ctx: Context, resource: ResourceType) -> None:
    """Record the caller as the requester; the client's own values are replaced."""
    spec = attach(obj, "spec")
    for name in ("uid", "extra"):
        spec.pop(name, None)
    spec["username"], spec["groups"] = ctx.caller.name, list(ctx.caller.groups)


def _check(new: Obj, old: Obj | None) -> list[FieldError]:
    spec = child(new, "spec")
    if old is not None:
        kept = spec == child(old, "spec")
        return [] if kept else [immutable("spec", spec)]
    errors = []
    request = text(spec, "request")
    if not _is_request(request):
        detail = "PEM block type must be CERTIFICATE REQUEST"
        errors.append(invalid("spec.request", request, detail))
    signer = text(spec, "signerName")
    if not signer:
        errors.append(required("spec.signerName"))
    elif not all(signer.partition("/")):
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        errors.append(invalid("spec.signerName", signer, detail))
    if not items(spec, "usages"):
        errors.append(required("spec.usages"))
    seconds = spec.get("expirationSeconds")
    if seconds is not None and seconds < _SECONDS_MIN:
        detail = f"may not specify a duration less than {_SECONDS_MIN} seconds (10 minutes)"
        errors.append(invalid("spec.expirationSeconds", seconds, detail))
    return errors


def _is_request(encoded: str) -> bool:
    try:
        return base64.b64decode(encoded, validate=True).lstrip().startswith(_PEM_HEAD)
    except (binascii.Error, ValueError):
        return False


def _take_approval(kept: Obj, sent: Obj) -> None:
    """Copy the conditions; the certificate belongs to ``status``."""
    attach(kept, "status")["conditions"] = objects(sent, "status", "conditions")


def _check_conditions(new: Obj, old: Obj | None) -> list[FieldError]:
    found = {text(each, "type") for each in objects(new, "status", "conditions")}
    before = {text(each, "type") for each in objects(old or {}, "status", "conditions")}
    conditions = objects(new, "status", "conditions")
    errors = []
    if {"Approved", "Denied"} <= found:
        detail = "Approved and Denied conditions are mutually exclusive"
        errors.append(invalid("status.conditions", conditions, detail))
    for kind in sorted(before & {"Approved", "Denied", "Failed"} - found):
        detail = f'updates may not remove a condition of type "{kind}"'
        errors.append(invalid("status.conditions", conditions, detail))
    return errors


def _cells(obj: Obj, now_ns: int) -> list[Any]:
    seconds = number(obj, "spec", "expirationSeconds")
    return [
        name_of(obj),
        age(obj, now_ns),
        text(obj, "spec", "signerName") or NONE,
        text(obj, "spec", "username"),
        human_duration(seconds) if seconds else NONE,
        _state(obj),
    ]


def _state(obj: Obj) -> str:
    found = {text(each, "type") for each in objects(obj, "status", "conditions")}
    shown = sorted(found & {"Approved", "Denied", "Failed"}) or ["Pending"]
    issued = ["Issued"] if text(obj, "status", "certificate") else []
    return ",".join([*shown, *issued])


KINDS = (
    ServedKind(
        resource=resource_type("certificates.k8s.io/v1", "certificatesigningrequests"),
        columns=_COLUMNS,
        cells=_cells,
        on_create=_prepare,
        name_rule=path_segment_name,
        has_status=True,
        parts={"approval": Part(take=_take_approval, check=_check_conditions)},
        check=_check,
        check_status=_check_conditions,
    ),
)
