"""The rules of kinds, those of the embedded API server, and manifests that keep to their types."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from moorage.api.bounds import OF_BODY, check_bounds
from moorage.api.codec import decode_untyped, encode
from moorage.api.resources import ResourceType
from moorage.base.errors import DecodeError, UsageError
from moorage.kinds import all_kinds
from moorage.kinds.custom.custom_kind import custom_kind
from moorage.kinds.custom.shipped import shipped_definitions
from moorage.kinds.kind import Obj
from moorage.kinds.served import ServedKind
from moorage.policies.registry import POLICY_KINDS

# The kinds whose plain JSON is used here, and whether the rules of their values are looked at.
_READ_PLAIN: Final[Mapping[tuple[str, str], bool]] = {
    ("", "LimitRange"): True,
    ("", "ReplicationController"): False,
    ("", "ResourceQuota"): True,
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicy"): False,
    ("admissionregistration.k8s.io", "MutatingAdmissionPolicyBinding"): False,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicy"): False,
    ("admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding"): False,
    ("apps", "DaemonSet"): False,
    ("apps", "Deployment"): False,
    ("apps", "ReplicaSet"): False,
    ("apps", "StatefulSet"): True,
    ("batch", "Job"): False,
    ("policy", "PodDisruptionBudget"): True,
    ("resource.k8s.io", "ResourceClaimTemplate"): False,
}


def checked_manifest(group: str, kind_name: str, item: bytes) -> bytes:
    """Return an object of a cluster that is read from plain JSON: its types have to be right.

    Most owners are not judged further, because a server of another version took them. A Job that
    no server has stored gets its defaults: without a limit it would fail with its first pod.

    Raises
    ------
    ValueError
        A value has a wrong type, or means nothing.
    """
    looks_at_values = _READ_PLAIN.get((group, kind_name))
    if looks_at_values is None:
        return item
    obj = decode_untyped(item)
    kind = _kinds().get((str(obj.get("apiVersion")), kind_name))
    if kind is None:
        return item
    wrong = kind.shape.type_errors(obj)
    if wrong:
        raise ValueError(str(wrong[0]))
    if looks_at_values:
        kind.default(obj)
        faults = kind.validate(obj, None, subresource=None)
        if faults:
            raise ValueError(faults[0].message)
    if kind_name == "Job" and (obj.get("spec") or {}).get("backoffLimit") is None:
        kind.default(obj)
        return encode(obj)
    return item


def kind_of(manifest: Mapping[str, Any]) -> ServedKind:
    """Return the rules of a manifest's kind.

    Raises
    ------
    UsageError
        There is no such kind.
    """
    version, name = str(manifest.get("apiVersion") or ""), str(manifest.get("kind") or "")
    kind = _kinds().get((version, name))
    if kind is None:
        raise UsageError(f"{version} {name} is no kind that can be tried; leave it out")
    return kind


def readable(manifest: Mapping[str, Any], kind: ServedKind | None = None) -> Obj:
    """Return a copy of a manifest whose values have the types of its kind.

    Parameters
    ----------
    kind
        The rules of its kind; None for any kind, of which only the names are looked at.

    Raises
    ------
    UsageError
        A value has another type, or the manifest is nested too deeply or too large.
    """
    try:
        check_bounds(manifest, OF_BODY)
    except DecodeError as error:
        raise UsageError(f"an object is {error}") from error
    obj = copy.deepcopy(dict(manifest))
    meta = obj["metadata"] = {} if obj.get("metadata") is None else obj["metadata"]
    called = meta.get("name") if isinstance(meta, dict) else None
    if kind is not None:
        name = f"{kind.resource.kind} {called or 'without a name'}"
        if wrong := kind.shape.type_errors(obj):
            raise UsageError(f"{name} would be refused: {wrong[0]}")
    elif not all(
        isinstance(each, str) for each in (obj.get("apiVersion"), obj.get("kind"), called)
    ):
        raise UsageError("an object lacks a readable apiVersion, kind or metadata.name")
    return obj


def resources_of(kind: str) -> list[ResourceType]:
    """Return the resources of a kind; PodGroup has two, of different groups."""
    return [each.resource for (_version, name), each in _kinds().items() if name == kind]


def is_read_plain(resource: ResourceType) -> bool:
    """Whether objects of a resource are read as plain JSON, though no scheduler watches them."""
    return (resource.group, resource.kind) in _READ_PLAIN


def versions_of(resource: ResourceType) -> frozenset[str]:
    """Return every version of a resource."""
    same = (resource.group, resource.plural)
    each = (kind.resource for kind in _kinds().values())
    return frozenset(r.version for r in each if (r.group, r.plural) == same)


@cache
def _kinds() -> dict[tuple[str, str], ServedKind]:
    """Return the rules of kinds by apiVersion and kind, those of scheduler-plugins included."""
    custom = [
        custom_kind(definition, version)
        for definition in shipped_definitions()
        for version in definition["spec"]["versions"]
    ]
    kinds = (*all_kinds(*POLICY_KINDS), *custom)
    return {(kind.resource.api_version, kind.resource.kind): kind for kind in kinds}
