"""Warnings about deprecated API versions, node labels, annotations and volumes, and about amounts.

Place in the flow: `served` tells each kind the warning of its version, which is sent with every
answer. The kinds' own warnings, for the writer of an object, are made of the functions here.
Mirrors kubernetes v1.36 staging/src/k8s.io/api (the releases in which types are deprecated) and
pkg/api/{node,persistentvolume,persistentvolumeclaim}.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from moorage.api.quantity import NANO
from moorage.api.resources import ResourceType
from moorage.kinds.tree import Json, child, objects, text
from moorage.kinds.values.quantities import canonical_quantity, nano_of

# (API version, resources): the release that deprecates them, the release without them, and what to
# use instead; only what is deprecated in v1.36.
_VERSIONS: Mapping[tuple[str, str], tuple[str, str, str]] = {
    ("v1", "componentstatuses"): ("v1.19", "", ""),
    ("v1", "endpoints"): ("v1.33", "", "discovery.k8s.io/v1 EndpointSlice"),
    ("certificates.k8s.io/v1alpha1", "clustertrustbundles"): ("v1.34", "v1.37", ""),
    ("coordination.k8s.io/v1alpha2", "leasecandidates"): ("v1.35", "", ""),
    ("networking.k8s.io/v1beta1", "ipaddresses servicecidrs"): ("v1.34", "v1.37", ""),
    (
        "resource.k8s.io/v1beta1",
        "deviceclasses resourceclaims resourceclaimtemplates resourceslices",
    ): ("v1.35", "v1.38", ""),
    (
        "resource.k8s.io/v1beta2",
        "deviceclasses resourceclaims resourceclaimtemplates resourceslices",
    ): ("v1.36", "v1.39", ""),
    ("resource.k8s.io/v1alpha3", "devicetaintrules"): ("v1.36", "", ""),
    ("storage.k8s.io/v1beta1", "volumeattributesclasses"): ("v1.34", "v1.37", ""),
}
_OF_RESOURCE = {
    (api_version, plural): lived
    for (api_version, plurals), lived in _VERSIONS.items()
    for plural in plurals.split()
}

_NODE_LABELS = {
    "beta.kubernetes.io/arch": 'deprecated since v1.14; use "kubernetes.io/arch" instead',
    "beta.kubernetes.io/os": 'deprecated since v1.14; use "kubernetes.io/os" instead',
    "failure-domain.beta.kubernetes.io/region": (
        'deprecated since v1.17; use "topology.kubernetes.io/region" instead'
    ),
    "failure-domain.beta.kubernetes.io/zone": (
        'deprecated since v1.17; use "topology.kubernetes.io/zone" instead'
    ),
    "beta.kubernetes.io/instance-type": (
        'deprecated since v1.17; use "node.kubernetes.io/instance-type" instead'
    ),
    "app.kubernetes.io/created-by": "deprecated since v1.9",
    "scheduler.alpha.kubernetes.io/preferAvoidPods": (
        "deprecated since v1.22; use Taints and Tolerations instead"
    ),
    "node-role.kubernetes.io/master": 'use "node-role.kubernetes.io/control-plane" instead',
}


_SINCE_22 = "deprecated in v1.22, non-functional in v1.25+"
_SINCE_28 = "deprecated in v1.28, non-functional in v1.31+"
_VOLUMES = {
    "photonPersistentDisk": "deprecated in v1.11, non-functional in v1.16+",
    "gitRepo": "deprecated in v1.11",
    "scaleIO": "deprecated in v1.16, non-functional in v1.22+",
    "flocker": _SINCE_22,
    "storageos": _SINCE_22,
    "quobyte": _SINCE_22,
    "glusterfs": "deprecated in v1.25, non-functional in v1.26+",
    "cephfs": _SINCE_28,
    "rbd": _SINCE_28,
}


def deprecation_of(resource: ResourceType) -> str:
    """Return the warning of a built-in resource's version; empty for most."""
    lived = _OF_RESOURCE.get((resource.api_version, resource.plural))
    if lived is None:
        return ""
    since, until, instead = lived
    gone = f", unavailable in {until}+" if until else ""
    use = f"; use {instead}" if instead else ""
    return f"{resource.api_version} {resource.kind} is deprecated in {since}+{gone}{use}"


def of_annotations(obj: Json, known: Mapping[str, str], where: str = "") -> list[str]:
    """Return a warning for each annotation that is known as deprecated."""
    given = child(obj, "metadata", "annotations")
    return [
        f"{where}metadata.annotations[{key}]: {told}" for key, told in known.items() if key in given
    ]


def of_labels(labels: Iterable[tuple[str, str]], *, with_name: bool = True) -> list[str]:
    """Return a warning for each deprecated node label of (path, label)."""
    return [
        f"{where}: {label} is {told}" if with_name else f"{where}: {told}"
        for where, label in labels
        if (told := _NODE_LABELS.get(label))
    ]


def of_expressions(holder: Mapping[str, Any], where: str) -> list[str]:
    """Return a warning for each deprecated node label in ``matchExpressions``."""
    found = enumerate(objects(holder, "matchExpressions"))
    keys = [(f"{where}.matchExpressions[{i}].key", text(each, "key")) for i, each in found]
    return of_labels(keys)


def of_volume(volume: Mapping[str, Any], where: str) -> list[str]:
    """Return a warning for each deprecated source of a volume."""
    return [f"{where}.{key}: {told}" for key, told in _VOLUMES.items() if volume.get(key)]


def of_claim(spec: Json, where: str) -> list[str]:
    """Return the warnings about the spec of a claim at a path."""
    found = []
    for part in ("requests", "limits"):
        listed = child(spec, "resources", part)
        found += of_fractions(listed, ("storage",), f"{where}.resources.{part}")
    return found


def of_fractions(listed: Json | None, names: tuple[str, ...], where: str) -> list[str]:
    """Return a warning for each amount of bytes that is no whole number."""
    return [
        f'{where}[{name}]: fractional byte value "{canonical_quantity(value)}" is invalid, '
        "must be an integer"
        for name in names
        if (value := (listed or {}).get(name)) and (nano_of(value) or 0) % NANO
    ]


def may_have_fractions(listed: Json | None, names: tuple[str, ...]) -> bool:
    """Whether amounts must be read; most are seen to be whole numbers without that."""
    if not listed:
        return False
    for name in names:
        value = str(listed.get(name, ""))
        if "." in value or "-" in value or value[-1:] in ("m", "u", "n"):
            return True
    return False
