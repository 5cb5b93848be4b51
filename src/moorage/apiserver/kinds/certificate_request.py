"""CertificateSigningRequest: a request for a certificate, with its approval or denial.

Nothing here signs. Mirrors kubernetes v1.36 pkg/registry/certificates/certificates/strategy.go and
pkg/apis/certificates/validation.
"""

from __future__ import annotations

import base64
import binascii

from moorage.api.resources import ResourceType
from moorage.apiserver.built_in import resource_type
from moorage.apiserver.kind import Context, FieldError, Obj, invalid, required
from moorage.apiserver.kinds.cells import AGE, NAME, NONE, column, human_duration
from moorage.apiserver.kinds.fields import given, kept, needed, rules, within
from moorage.apiserver.kinds.name_rules import path_segment_name
from moorage.apiserver.kinds.served import Part, ServedKind
from moorage.apiserver.kinds.tree import attach, number, objects, text

_PEM_HEAD = b"-----BEGIN CERTIFICATE REQUEST-----"
_SECONDS_MIN = 600


def _prepare(obj: Obj, ctx: Context, resource: ResourceType) -> None:
    """Record the caller as the requester; the client's own values are replaced."""
    spec = attach(obj, "spec")
    for name in ("uid", "extra"):
        spec.pop(name, None)
    spec["username"], spec["groups"] = ctx.caller.name, list(ctx.caller.groups)


def _request(encoded: str | None, where: str) -> list[FieldError]:
    try:
        is_one = base64.b64decode(encoded or "", validate=True).lstrip().startswith(_PEM_HEAD)
    except (binascii.Error, ValueError):
        is_one = False
    detail = "PEM block type must be CERTIFICATE REQUEST"
    return [] if is_one else [invalid(where, encoded or "", detail)]


def _signer(signer: str | None, where: str) -> list[FieldError]:
    if not signer:
        return [required(where)]
    detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
    return [] if all(signer.partition("/")) else [invalid(where, signer, detail)]


_least = f"may not specify a duration less than {_SECONDS_MIN} seconds (10 minutes)"
_new = rules(
    ("spec.request", _request),
    ("spec.signerName", _signer),
    ("spec.usages", needed()),
    ("spec.expirationSeconds", given(within(_SECONDS_MIN, None, _least))),
)


def _types(obj: Obj) -> set[str]:
    return {text(each, "type") for each in objects(obj, "status", "conditions")}


def _take_approval(kept: Obj, sent: Obj) -> None:
    """Copy the conditions; the certificate belongs to ``status``."""
    attach(kept, "status")["conditions"] = objects(sent, "status", "conditions")


def _check_conditions(new: Obj, old: Obj | None) -> list[FieldError]:
    found, before = _types(new), _types(old or {})
    both = {"Approved", "Denied"} <= found
    details = ["Approved and Denied conditions are mutually exclusive"] if both else []
    details += [
        f'updates may not remove a condition of type "{kind}"'
        for kind in sorted(before & {"Approved", "Denied", "Failed"} - found)
    ]
    conditions = objects(new, "status", "conditions")
    return [invalid("status.conditions", conditions, detail) for detail in details]


def _duration(obj: Obj) -> str:
    seconds = number(obj, "spec", "expirationSeconds")
    return human_duration(seconds) if seconds else NONE


def _state(obj: Obj) -> str:
    shown = sorted(_types(obj) & {"Approved", "Denied", "Failed"}) or ["Pending"]
    issued = ["Issued"] if text(obj, "status", "certificate") else []
    return ",".join([*shown, *issued])


KINDS = (
    ServedKind(
        resource=resource_type("certificates.k8s.io/v1", "certificatesigningrequests"),
        columns=(
            NAME,
            AGE,
            column(
                "SignerName", "spec.signerName", "Signer that the request is meant for", empty=NONE
            ),
            column("Requestor", "spec.username", "User who made the request"),
            column("RequestedDuration", _duration, "How long the certificate should be valid"),
            column(
                "Condition", _state, "Whether the request is approved, denied, issued or failed"
            ),
        ),
        on_create=_prepare,
        name_rule=path_segment_name,
        parts={"approval": Part(take=_take_approval, check=_check_conditions)},
        check=lambda new, old: _new(new, "") if old is None else [],
        change=kept("spec"),
        check_status=_check_conditions,
    ),
)
