"""CertificateSigningRequest: a request for a certificate, with its approval or denial.

Nothing here signs. Mirrors kubernetes v1.36 pkg/registry/certificates/certificates/strategy.go and
pkg/apis/certificates/validation.
"""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from moorage.api.names import dns_label_faults, dns_subdomain_faults
from moorage.api.resources import ResourceType
from moorage.kinds import status
from moorage.kinds.built_in import resource_type
from moorage.kinds.cells import AGE, NAME, NONE, column, human_duration, name_of
from moorage.kinds.fields import if_present, rules, unchanging, within
from moorage.kinds.kind import (
    Context,
    FieldError,
    Obj,
    duplicate,
    invalid,
    not_supported,
    required,
)
from moorage.kinds.served import Part, ServedKind
from moorage.kinds.tree import attach, number, objects, text
from moorage.kinds.values.name_rules import path_segment_name

if TYPE_CHECKING:
    from cryptography import x509

_PEM_HEAD = b"-----BEGIN CERTIFICATE REQUEST-----"
_SECONDS_MIN = 600
_CLIENT_SIGNER = "kubernetes.io/kube-apiserver-client"
_LEGACY_SIGNER = "kubernetes.io/legacy-unknown"
_ADMINISTRATORS = "system:masters"
_USAGES = frozenset(
    {
        "any",
        "cert sign",
        "client auth",
        "code signing",
        "content commitment",
        "crl sign",
        "data encipherment",
        "decipher only",
        "digital signature",
        "email protection",
        "encipher only",
        "ipsec end system",
        "ipsec tunnel",
        "ipsec user",
        "key agreement",
        "key encipherment",
        "microsoft sgc",
        "netscape sgc",
        "ocsp signing",
        "s/mime",
        "server auth",
        "signing",
        "timestamping",
    }
)


def _usages(usages: list[str] | None, where: str) -> list[FieldError]:
    if not usages:
        return [required(where)]
    errors, known = [], set[str]()
    for place, usage in enumerate(usages):
        if usage not in _USAGES:
            errors.append(not_supported(f"{where}[{place}]", usage, _USAGES))
        if usage in known:
            errors.append(duplicate(f"{where}[{place}]", usage))
        known.add(usage)
    return errors


def _prepare(obj: Obj, ctx: Context, resource: ResourceType) -> None:
    """Record the caller as the requester; the client's own values are replaced.

    Raises
    ------
    moorage.kinds.status.StatusError
        403: a client certificate would have the rights of an administrator.

    Notes
    -----
    The refusal is kubernetes v1.36 plugin/pkg/admission/certificates/subjectrestriction.
    """
    spec = attach(obj, "spec")
    signer = text(spec, "signerName")
    if signer == _CLIENT_SIGNER and _ADMINISTRATORS in _organizations(text(spec, "request")):
        why = f"use of {signer} signer with {_ADMINISTRATORS} group is not allowed"
        raise status.forbidden(resource, name_of(obj), why)
    for name in ("uid", "extra"):
        spec.pop(name, None)
    spec |= ctx.caller.info


def _parsed(encoded: str) -> x509.CertificateSigningRequest | str:
    """Return the request in PEM, or the reason why it is none."""
    # The library is large, and few clusters have such requests.
    from cryptography import x509

    try:
        pem = base64.b64decode(encoded, validate=True)
    except (binascii.Error, ValueError):
        pem = b""
    if not pem.lstrip().startswith(_PEM_HEAD):
        return "PEM block type must be CERTIFICATE REQUEST"
    try:
        return x509.load_pem_x509_csr(pem)
    except ValueError:
        return "the request cannot be parsed"


def _organizations(encoded: str) -> list[object]:
    """Return the organizations of a request's subject, which become the groups of a client."""
    from cryptography.x509.oid import NameOID

    found = _parsed(encoded)
    if isinstance(found, str):
        return []
    named = found.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    return [each.value for each in named]


def _request(encoded: str | None, where: str) -> list[FieldError]:
    found = _parsed(encoded or "")
    return [invalid(where, encoded or "", found)] if isinstance(found, str) else []


def _signer(signer: str | None, where: str) -> list[FieldError]:
    """Check the name of a signer: a domain, and a path without further slashes.

    Notes
    -----
    kubernetes v1.36 pkg/apis/certificates/validation (ValidateSignerName).
    """
    if not signer:
        return [required(where)]
    domain, _, path = signer.partition("/")
    if not domain or not path or "/" in path:
        detail = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        return [invalid(where, signer, detail)]
    if signer == _LEGACY_SIGNER:
        detail = "the legacy signerName is not allowed via this API version"
        return [invalid(where, signer, detail)]
    errors = [invalid(where, domain, fault) for fault in dns_subdomain_faults(domain)]
    if "." not in domain:
        errors.append(
            invalid(
                where, domain, "should be a domain with at least two segments separated by dots"
            )
        )
    return errors + [
        invalid(where, signer, fault)
        for part in path.split(".")
        for fault in dns_label_faults(part)
    ]


_least = f"may not specify a duration less than {_SECONDS_MIN} seconds (10 minutes)"
_new = rules(
    ("spec.request", _request),
    ("spec.signerName", _signer),
    ("spec.usages", _usages),
    ("spec.expirationSeconds", if_present(within(_SECONDS_MIN, None, _least))),
)


def _types(obj: Obj) -> set[str]:
    return {text(each, "type") for each in objects(obj, "status", "conditions")}


def _take_approval(stored: Obj, sent: Obj) -> None:
    """Copy the conditions; the certificate belongs to ``status``."""
    attach(stored, "status")["conditions"] = objects(sent, "status", "conditions")


def _check_conditions(new: Obj, old: Obj | None) -> list[FieldError]:
    types, before = _types(new), _types(old or {})
    both = {"Approved", "Denied"} <= types
    details = ["Approved and Denied conditions are mutually exclusive"] if both else []
    details += [
        f'updates may not remove a condition of type "{kind}"'
        for kind in sorted(before & {"Approved", "Denied", "Failed"} - types)
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
        change=unchanging("spec"),
        check_status=_check_conditions,
    ),
)
