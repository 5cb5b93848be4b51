"""The cluster that plugins are measured on, and for each plugin a pod that gives it work."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moorage.snapshot.shape import USER_NAMESPACES_HOST_NETWORK
from moorage_lab.bench import manifests as m
from moorage_lab.bench.workload import (
    CreateObjects,
    JsonObject,
    Template,
    default_node,
    default_pod,
)

NODES_LEAST: Final = 10
"""Smallest cluster with room for every case: one node in ten is free for whole-node pods."""

_IMAGE: Final = "registry.k8s.io/pause:3.10.1"
_BLUE: Final = {"color": "blue"}
_NOT_SO_SOON: Final = {"key": "busy", "value": "yes", "effect": "PreferNoSchedule"}
_GUARDED: Final = {"key": "guarded", "value": "yes", "effect": "NoSchedule"}


def node(index: int) -> JsonObject:
    """Return a default node; some are tainted, cordoned, or have the image."""
    manifest = default_node(index)
    manifest["spec"] = {"unschedulable": index % 50 == 1}
    manifest["spec"]["taints"] = [
        *([_NOT_SO_SOON] if index % 3 == 0 else []),
        *([_GUARDED] if index % 7 == 0 else []),
    ]
    status = manifest["status"]
    if index % 2 == 0:
        status["images"] = [{"names": [_IMAGE], "sizeBytes": 400_000_000}]
    if index % 5:
        status["declaredFeatures"] = [USER_NAMESPACES_HOST_NETWORK]
    return manifest


def resident(index: int) -> JsonObject:
    """Return the pod on a node: in turn plain, with one of four affinities, or with a host port."""
    term = m.term(_BLUE, m.HOSTNAME)
    specs: tuple[JsonObject, ...] = (
        {},
        m.required("podAffinity", m.term(_BLUE, m.ZONE)),
        m.required("podAntiAffinity", m.term({"color": "green"}, m.HOSTNAME)),
        m.preferred("podAffinity", term),
        m.preferred("podAntiAffinity", term),
        {"volumes": [_disk(f"disk-{index}")]},
    )
    color = ("none", "blue", "green", "blue", "yellow", "none")[index % len(specs)]
    manifest = m.pod("resident", specs[index % len(specs)], labels={"color": color})(index)
    manifest["spec"]["nodeName"] = f"scheduler-perf-{index}"
    if index % len(specs) == 0:
        _with_host_port(manifest)
    return manifest


def _small(prefix: str, spec: JsonObject) -> Template:
    """Return the template of small pods with the label of blue pods."""
    whole = m.pod(prefix, spec, labels=_BLUE)

    def template(index: int) -> JsonObject:
        manifest = whole(index)
        amounts = {"cpu": "10m", "memory": "10Mi"}
        manifest["spec"]["containers"][0]["resources"] = {"requests": amounts}
        return manifest

    return template


def _with_host_port(manifest: JsonObject) -> JsonObject:
    manifest["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 8080}]
    return manifest


def _disk(name: str) -> JsonObject:
    return {"name": "disk", "gcePersistentDisk": {"pdName": name}}


def _ports(prefix: str) -> Template:
    plain = _small(prefix, {})
    return lambda index: _with_host_port(plain(index))


def _disks(prefix: str) -> Template:
    plain = _small(prefix, {})

    def template(index: int) -> JsonObject:
        manifest = plain(index)
        manifest["spec"]["volumes"] = [_disk("disk-5")]  # earlier pods use this claim, too
        return manifest

    return template


def _spec(*, volumes: bool = False, **spec: object) -> Callable[[str], Template]:
    def template_of(prefix: str) -> Template:
        template = _small(prefix, dict(spec))
        claims = (f"{prefix}-bound", f"{prefix}-waiting") if volumes else ()
        return m.with_claims(template, *claims) if volumes else template

    return template_of


_TOLERATIONS: Final = [{"key": "guarded", "operator": "Exists"}]
_NODE_AFFINITY: Final = {
    "requiredDuringSchedulingIgnoredDuringExecution": {
        "nodeSelectorTerms": [m.zone_in("zone1", "zone2")]
    },
    "preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 5, "preference": m.zone_in("zone1")}
    ],
}
_POD_AFFINITY: Final = {
    **m.required("podAffinity", m.term(_BLUE, m.ZONE))["affinity"]["podAffinity"],
    **m.preferred("podAffinity", m.term(_BLUE, m.HOSTNAME))["affinity"]["podAffinity"],
}
_POD_ANTI_AFFINITY: Final = {
    **m.required("podAntiAffinity", m.term({"color": "green"}, m.HOSTNAME))["affinity"][
        "podAntiAffinity"
    ],
    **m.preferred("podAntiAffinity", m.term(_BLUE, m.HOSTNAME))["affinity"]["podAntiAffinity"],
}
_BETWEEN_PODS: Final = {"podAffinity": _POD_AFFINITY, "podAntiAffinity": _POD_ANTI_AFFINITY}
_ANY_SKEW: Final = 1_000_000
"""A skew that no cluster reaches: residents spread unevenly over zones, most on many nodes."""
_SPREAD: Final = [
    m.spread(_BLUE, m.ZONE, skew=_ANY_SKEW, when="DoNotSchedule"),
    m.spread(_BLUE, m.HOSTNAME, skew=5, when="DoNotSchedule"),
    m.spread(_BLUE, m.ZONE, skew=1, when="ScheduleAnyway"),
    m.spread(_BLUE, m.HOSTNAME, skew=1, when="ScheduleAnyway"),
]
_EVERYTHING: Final[JsonObject] = {
    "tolerations": _TOLERATIONS,
    "affinity": {"nodeAffinity": _NODE_AFFINITY, **_BETWEEN_PODS},
    "topologySpreadConstraints": _SPREAD,
}


def _everything(prefix: str) -> Template:
    whole = _spec(volumes=True, **_EVERYTHING)(prefix)

    def template(index: int) -> JsonObject:
        manifest = _with_host_port(whole(index))
        manifest["spec"]["volumes"].append(_disk(f"{prefix}-{index}"))
        return manifest

    return template


CASES: Final[dict[str, Callable[[str], Template]]] = {
    "NodeUnschedulable": _spec(),
    "NodeName": _spec(nodeName="scheduler-perf-3"),
    "TaintToleration": _spec(tolerations=_TOLERATIONS),
    "NodeAffinity": _spec(affinity={"nodeAffinity": _NODE_AFFINITY}),
    "NodePorts": _ports,
    "NodeResourcesFit": _spec(),
    "VolumeRestrictions": _disks,
    "NodeVolumeLimits": _spec(volumes=True),
    "VolumeBinding": _spec(volumes=True),
    "VolumeZone": _spec(volumes=True),
    "PodTopologySpread": _spec(topologySpreadConstraints=_SPREAD),
    "InterPodAffinity": _spec(affinity=_BETWEEN_PODS),
    "NodeResourcesBalancedAllocation": _spec(),
    "ImageLocality": _spec(),
    "NodeDeclaredFeatures": _spec(hostNetwork=True, hostUsers=False),
}
"""Plugin to the template of its pods, given a prefix for names.

DynamicResources is left out: its cost depends on slices and claims, which no case has.
"""

MIXES: Final[dict[str, Callable[[str], Template]]] = {
    "plain": default_pod,
    "spread": _spec(topologySpreadConstraints=_SPREAD),
    "pod affinity": _spec(affinity=_BETWEEN_PODS),
    "spread + pod affinity": _spec(affinity=_BETWEEN_PODS, topologySpreadConstraints=_SPREAD),
    "volumes": _spec(volumes=True),
    "everything": _everything,
}
"""Pods for whole decisions."""


def claims_and_volumes(prefix: str, count: int) -> tuple[CreateObjects, ...]:
    """Return the claims for a case's pods: some bound to volumes in zone1, some unbound."""
    return (
        CreateObjects(1, m.waiting_class),
        CreateObjects(count, m.bound_volume(f"{prefix}-bound", zone="zone1")),
        CreateObjects(count, m.bound_claim(f"{prefix}-bound")),
        CreateObjects(count, m.waiting_claim(f"{prefix}-waiting")),
    )
