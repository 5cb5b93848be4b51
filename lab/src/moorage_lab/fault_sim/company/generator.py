"""Draws worlds from seeds: which features a world has, and the objects that show them.

A world has a cluster that low pods fill, and one or two waves of pods of higher priority. Every
feature is drawn by itself, so all of them meet each other; `coverage` says which did.
"""

from __future__ import annotations

from typing import Any

from moorage.api.coscheduling import (
    COSCHEDULING_POD_GROUPS,
    GROUP_LABEL,
    MIN_AVAILABLE_LABEL,
    NAME_LABEL,
    OLD_GROUP_LABEL,
)
from moorage.api.resources import ELASTIC_QUOTAS, POD_GROUPS
from moorage.base.rng import Random, Streams
from moorage.nodeshapes.annotations import RUN_SECONDS, STOP_SECONDS
from moorage_lab.fault_sim.acts import Create, Delete, Join, Patch
from moorage_lab.fault_sim.company.features import (
    BARE,
    GROUPS,
    OLD_LABEL,
    PLACEMENT,
    WORKLOADS,
    features_of,
)
from moorage_lab.fault_sim.company.manifests import PRIORITIES, priority_class, template, workload
from moorage_lab.fault_sim.company.setups import (
    COMPLETE,
    PERMIT,
    SECOND_PROFILE,
    TWO_PROFILES,
    setup_name,
)
from moorage_lab.fault_sim.company.world import (
    WAVE_LABEL,
    AnyWorldAct,
    CompanyWorld,
    GroupSize,
    Wave,
)
from moorage_lab.fault_sim.users.plot import HOST, ZONE
from moorage_lab.fault_sim.users.stored import (
    device_class,
    device_slice,
    resource_claim,
    storage_class,
)
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest

_NODE_CPU = 4
_SECOND_PROFILE_SHARE = 0.5
_GRACES = (0, 1, 5, 10, 30)
_WAVE_AT = 15.0
_SECOND_WAVE_AT = 35.0
# The pods of a node that is gone are removed within this time.
_COLLECTING_SECONDS = 60.0
_GPU = "nvidia.com/gpu"


class _Draft:
    """A world under way."""

    def __init__(self, seed: int, features: frozenset[str]) -> None:
        self.rng: Random = Streams(seed).stream("world")
        self.features = features
        self.acts: list[AnyWorldAct] = []
        self.waves: list[Wave] = []
        self.groups: list[GroupSize] = []
        self.grace = self.rng.choice(_GRACES)
        self.graces: set[int] = set()
        count = self.rng.randint(1, 4 if "gpu-shares" in features else 6)
        if features & {"node-goes", "cordon", "spread", "anti-affinity"}:
            count = max(count, 3)
        self.nodes = [self.node_object(f"n{number}") for number in range(1, count + 1)]
        self.namespace = "default"

    def has(self, feature: str) -> bool:
        return feature in self.features

    def node_object(self, name: str) -> Manifest:
        number = sum(map(ord, name))
        labels = {ZONE: f"zone-{number % 2}"}
        made = node_manifest(name, cpu=str(_NODE_CPU), labels=labels)
        if self.has("gpu-shares"):
            for amounts in (made["status"]["capacity"], made["status"]["allocatable"]):
                amounts[_GPU] = "2"
        return made

    def add_creation(self, obj: Manifest, at: float) -> None:
        self.acts.append(Create(at=at, object=obj))

    def add_pod(self, meta: dict[str, Any], body: Manifest, at: float) -> None:
        """Let a pod without owner come, made from a template."""
        metadata = {**meta, "annotations": body["metadata"]["annotations"]}
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": body["spec"]}
        self.add_creation(pod, at)

    def spec(self, name: str, *, priority: str, placement: frozenset[str]) -> dict[str, Any]:
        """Return the fields of the pods of a set."""
        grace = self.rng.choice(_GRACES) if self.has("mixed-graces") else self.grace
        self.graces.add(grace)
        spec: dict[str, Any] = {"terminationGracePeriodSeconds": grace}
        if priority != "low":
            spec["priorityClassName"] = priority
        if self.has(TWO_PROFILES) and self.rng.random() < _SECOND_PROFILE_SHARE:
            spec["schedulerName"] = SECOND_PROFILE
        term = {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": HOST}
        if "spread" in placement:
            hard = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
            spec["topologySpreadConstraints"] = [{**term, **hard}]
        affinity: dict[str, Any] = {}
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        if "affinity" in placement:
            affinity["podAffinity"] = {required: [{**term, "topologyKey": ZONE}]}
        if "anti-affinity" in placement:
            affinity["podAntiAffinity"] = {required: [term]}
        if affinity:
            spec["affinity"] = affinity
        return spec

    def pod_template(
        self, name: str, *, priority: str, placement: frozenset[str], cpu: str
    ) -> Manifest:
        """Return the template of the pods of a set."""
        spec = self.spec(name, priority=priority, placement=placement)
        manifest = template(cpu, **spec)
        grace = spec["terminationGracePeriodSeconds"]
        annotations = manifest["metadata"]["annotations"]
        annotations[STOP_SECONDS] = str(self.rng.choice((grace, grace / 2)))
        container = manifest["spec"]["containers"][0]
        if "host-ports" in placement:
            container["ports"] = [{"containerPort": 7070, "hostPort": 7070}]
        if "gpu-shares" in placement:
            annotations["alibabacloud.com/gpu-count"] = "1"
            annotations["alibabacloud.com/gpu-milli"] = "1000" if priority == "high" else "500"
        if "claims" in placement:
            entry = {"name": "one", "resourceClaimTemplateName": "device"}
            manifest["spec"]["resourceClaims"] = [entry]
            container["resources"]["claims"] = [{"name": "one"}]
        if "volumes" in placement:
            claim = {
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": "disks",
                "resources": {"requests": {"storage": "1Gi"}},
            }
            source = {"volumeClaimTemplate": {"spec": claim}}
            manifest["spec"]["volumes"] = [{"name": "data", "ephemeral": source}]
        return manifest

    def placement(self) -> frozenset[str]:
        """Draw what the pods of a set ask for, of what this world has."""
        drawn = [each for each in PLACEMENT if self.has(each) and self.rng.random() < 0.6]
        if "anti-affinity" in drawn and "affinity" in drawn:
            drawn.remove("affinity")
        return frozenset(drawn)


def draw_world(seed: int, *, wide: bool = False) -> CompanyWorld:
    """Return the world of a seed; a wide one has more features at once."""
    features = features_of(seed, wide=wide)
    if not features & {*GROUPS, OLD_LABEL}:
        features -= {PERMIT, COMPLETE}
    draft = _Draft(seed, features)
    _create_basics(draft)
    _fill(draft)
    _fill_with_bare_pods(draft)
    _come(draft, 1, _WAVE_AT, "high")
    if draft.has("second-wave"):
        _come(draft, 2, _SECOND_WAVE_AT, "high")
    _change_nodes(draft)
    _stream_small_pods(draft)
    draft.acts.sort(key=lambda act: act.at)
    grace = max(draft.graces, default=0)
    last = draft.acts[-1].at
    return CompanyWorld(
        seed=seed,
        features=tuple(sorted(features)),
        setup=setup_name(_parts(features)),
        nodes=draft.nodes,
        acts=draft.acts,
        waves=tuple(draft.waves),
        groups=tuple(draft.groups),
        autoscaled_most=2 if draft.has("autoscaler") else 0,
        grace_seconds_most=grace,
        end_seconds=last + 2 * grace + 30.0 + _COLLECTING_SECONDS * draft.has("node-goes"),
    )


def _parts(features: frozenset[str]) -> set[str]:
    parts = features & {PERMIT, COMPLETE, TWO_PROFILES, "gpu-shares"}
    if features & {"group-object", "group-labels", OLD_LABEL}:
        parts |= {"coscheduling"}
    if "elastic-quota" in features:
        parts |= {"elastic-quotas"}
    return set(parts)


def _create_basics(draft: _Draft) -> None:
    """Create classes, quotas and what pods claim."""
    for name in PRIORITIES:
        if name != "low":
            draft.add_creation(priority_class(name), 1.0)
    cpu = _NODE_CPU * len(draft.nodes)
    if draft.has("resource-quota"):
        spec = {"hard": {"pods": str(draft.rng.randint(cpu, 2 * cpu + 10))}}
        meta = {"name": "pods", "namespace": "default"}
        draft.add_creation(
            {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": meta, "spec": spec}, 1.0
        )
    if draft.has("elastic-quota"):
        draft.add_creation(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "owner"}}, 1.0
        )
        for name, least in (("default", 0), ("owner", cpu)):
            spec = {
                "min": {"cpu": str(least), "memory": "64Gi"},
                "max": {"cpu": "1000", "memory": "640Gi"},
            }
            draft.add_creation(
                {
                    "apiVersion": ELASTIC_QUOTAS.api_version,
                    "kind": ELASTIC_QUOTAS.kind,
                    "metadata": {"name": "quota", "namespace": name},
                    "spec": spec,
                },
                1.2,
            )
    if draft.has("volumes"):
        draft.add_creation(storage_class("disks", provisioner="moorage.dev/none"), 1.0)
    if draft.has("claims"):
        draft.add_creation(device_class("device"), 1.0)
        for node in draft.nodes:
            made = device_slice("device", node["metadata"]["name"], 2)
            made["metadata"]["name"] = f"device-{node['metadata']['name']}"
            draft.add_creation(made, 1.0)
        for namespace in ("default", "owner") if draft.has("elastic-quota") else ("default",):
            draft.add_creation(_claim_template(namespace), 1.3)


def _claim_template(namespace: str) -> Manifest:
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "device", "namespace": namespace},
        "spec": {"spec": resource_claim("device", "")["spec"]},
    }


def _fill(draft: _Draft) -> None:
    """Create the workloads of low and middle priority; together they ask for more than there is."""
    rng = draft.rng
    kinds = [feature for feature in WORKLOADS if draft.has(feature)]
    room = _NODE_CPU * len(draft.nodes)
    for number, feature in enumerate(kinds):
        name = feature
        middle = draft.has("middle-priority") and number == len(kinds) - 1
        count = room // len(kinds) + rng.randint(0, 4)
        pod_body = draft.pod_template(
            name,
            priority="middle" if middle else "low",
            placement=draft.placement(),
            cpu="1",
        )
        if feature == "job":
            pod_body["metadata"]["annotations"][RUN_SECONDS] = "1000"
        draft.add_creation(workload(WORKLOADS[feature], name, count, pod_body), 2.0)
        if draft.has("budget"):
            draft.add_creation(_budget(name, rng.choice((1, count // 2))), 1.0)


def _fill_with_bare_pods(draft: _Draft) -> None:
    """Create low pods that nobody makes again; each has its own grace."""
    if not draft.has(BARE):
        return
    for number in range(draft.rng.randint(2, _NODE_CPU * len(draft.nodes))):
        body = draft.pod_template(BARE, priority="low", placement=frozenset(), cpu="1")
        grace = draft.rng.choice(_GRACES)
        draft.graces.add(grace)
        body["spec"]["terminationGracePeriodSeconds"] = grace
        body["metadata"]["annotations"][STOP_SECONDS] = str(grace)
        meta = {"name": f"bare-{number}", "namespace": "default", "labels": {"app": BARE}}
        draft.add_pod(meta, body, 1.8)


def _budget(app: str, count: int) -> Manifest:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app, "namespace": "default"},
        "spec": {"maxUnavailable": count, "selector": {"matchLabels": {"app": app}}},
    }


def _come(draft: _Draft, number: int, at: float, priority: str) -> None:
    """Let pods of higher priority come: groups, single pods."""
    rng = draft.rng
    draft.waves.append(Wave(number=number, at=at))
    namespace = "owner" if draft.has("elastic-quota") else "default"
    for form in (*GROUPS, OLD_LABEL, "single-pods"):
        if not draft.has(form):
            continue
        name = f"{form}-{number}"
        count = rng.randint(1, min(6, 2 * len(draft.nodes)))
        placement = draft.placement()
        if placement & {"anti-affinity", "host-ports"}:
            count = min(count, len(draft.nodes))
        labels = {"app": name, WAVE_LABEL: str(number)}
        more: dict[str, Any] = {}
        if form in ("group-object", OLD_LABEL):
            labels[OLD_GROUP_LABEL if form == OLD_LABEL else GROUP_LABEL] = name
            draft.add_creation(
                _group(COSCHEDULING_POD_GROUPS, name, namespace, {"minMember": count}), at
            )
        elif form == "group-labels":
            labels |= {NAME_LABEL: name, MIN_AVAILABLE_LABEL: str(count)}
        elif form == "group-kubernetes":
            least = {"schedulingPolicy": {"gang": {"minCount": count}}}
            draft.add_creation(_group(POD_GROUPS, name, namespace, least), at)
            more["schedulingGroup"] = {"podGroupName": name}
        if form != "single-pods":
            draft.groups.append(GroupSize(name=name, least=count))
        pod_body = draft.pod_template(
            name, priority=priority, placement=placement, cpu=rng.choice(("1", "1", "2"))
        )
        for member in range(count):
            meta = {"name": f"{name}-{member}", "namespace": namespace, "labels": labels}
            spec = {**pod_body["spec"], **more}
            if draft.has(COMPLETE) and member % 2:
                spec = _with_more_cpu(spec)
            draft.add_pod(meta, {**pod_body, "spec": spec}, at)


def _with_more_cpu(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a member that is unlike the others, which makes a complete search differ."""
    (container,) = spec["containers"]
    resources = container["resources"]
    requests = {**resources["requests"], "cpu": "3"}
    return {**spec, "containers": [{**container, "resources": {**resources, "requests": requests}}]}


def _group(resource: Any, name: str, namespace: str, spec: dict[str, Any]) -> Manifest:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": resource.api_version, "kind": "PodGroup", "metadata": meta, "spec": spec}


def _change_nodes(draft: _Draft) -> None:
    """Let nodes come, go and be cordoned: around the first wave or long after it."""
    rng = draft.rng
    if draft.has("node-comes"):
        draft.acts.append(Join(at=rng.choice((10.0, 17.0, 28.0)), node=draft.node_object("late")))
    if draft.has("cordon"):
        changes = {"spec": {"unschedulable": True}}
        at = rng.choice((10.0, 16.0, 28.0))
        draft.acts.append(Patch(at=at, kind="Node", name="n2", changes=changes, namespace=""))
    if draft.has("node-goes"):
        at = rng.choice((10.0, 16.0, 28.0))
        draft.acts.append(Delete(at=at, kind="Node", name="n3", namespace=""))


def _stream_small_pods(draft: _Draft) -> None:
    """Let small pods without owner come one after another, which end by themselves."""
    if not draft.has("small-pods"):
        return
    at, number = 12.0, 0
    while at < 45.0:
        number += 1
        annotations = {RUN_SECONDS: str(draft.rng.choice((3, 8, 20)))}
        pod = pod_manifest(
            f"small-{number}",
            cpu="250m",
            labels={"app": "small"},
            annotations=annotations,
            restartPolicy="Never",
            terminationGracePeriodSeconds=0,
        )
        draft.add_creation(pod, at)
        at += draft.rng.uniform(1.0, 4.0)
