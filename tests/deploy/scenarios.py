"""The use of the scheduler's rights: one scenario for each part of its work.

Each scenario ends in an error where the scheduler may not do what it shows.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from moorage.api.codec import encode
from moorage.api.resources import CUSTOM_RESOURCE_DEFINITIONS, LEASES, NODES, PODS
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.errors import TransportError
from moorage.base.rng import Streams
from moorage.client.transport import Answer, Call
from moorage.config.feature_gates import feature_gates
from moorage.config.load import parse_config
from moorage.config.own import LoadedConfiguration
from moorage.service.intake.kinds import (
    COMPOSITE_POD_GROUP,
    CUSTOM,
    DEVICE_TAINT_RULE,
    JOB,
    POD_GROUP,
    WATCHED,
)
from moorage.service.process.leader import elector_of
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from sandbox.tests.controllers.test_resource_claims import claims, device_class, offered, state
from sandbox.tests.controllers.test_resource_claims import template as claim_template
from sandbox.tests.controllers.test_resource_claims import using as using_device
from sandbox.tests.controllers.test_volumes import claim, local_volume, storage_class, using
from scheduler.tests.kinds.builders import of_resource
from scheduler.tests.plugins.numa.definition import DEFINITION
from scheduler.tests.service.test_composite_groups import GATES as COMPOSITE_GATES
from scheduler.tests.service.test_composite_groups import Live as LiveGroups
from scheduler.tests.service.test_group_attempt import group, member
from scheduler.tests.service.test_preemption import high, low, priority
from tests.deploy.rights import NAMESPACE, Script
from tests.scenarios.gangs import pod_group

_HEAD = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {{leaderElect: true, resourceNamespace: {NAMESPACE}, resourceName: moorage}}
profiles:
"""
PLAIN = parse_config(_HEAD + "- {}\n")
_GPU = "example.com/gpu"


def with_plugin(name: str, instead: str = "") -> LoadedConfiguration:
    """Return a configuration with one plugin more, in the place of another."""
    disabled = f", disabled: [{{name: {instead}}}]" if instead else ""
    line = f"- plugins: {{multiPoint: {{enabled: [{{name: {name}}}]{disabled}}}}}\n"
    return parse_config(_HEAD + line)


class Scenario(NamedTuple):
    """A part of the scheduler's work."""

    run: Callable[[VirtualCluster], Awaitable[None]]
    nodes: Sequence[Manifest] = (node_manifest("n1"), node_manifest("n2"))
    config: LoadedConfiguration = PLAIN
    streams_lists: bool = True
    script: Callable[[], Script] = lambda: lambda call: None


# --- looking ----------------------------------------------------------------------------------


def _object(kind: Any, number: int) -> Manifest:
    """Return an object of a watched kind that the server takes."""
    name = f"seen-{number}"
    bodies: dict[str, Manifest] = {
        "Service": {"spec": {"ports": [{"port": 80}]}},
        "ReplicationController": _controller({"app": name}),
        "ReplicaSet": _controller({"matchLabels": {"app": name}}),
        "StatefulSet": _controller({"matchLabels": {"app": name}}),
        "PersistentVolume": {"spec": local_volume(name, "n1")["spec"]},
        "PersistentVolumeClaim": {"spec": claim(name)["spec"]},
        "StorageClass": {"provisioner": "disks.example"},
        "CSINode": {"spec": {"drivers": []}},
        "CSIDriver": {"spec": {"attachRequired": False}},
        "CSIStorageCapacity": {"storageClassName": "local", "capacity": "1Gi"},
        "VolumeAttachment": {
            "spec": {
                "attacher": "disks.example",
                "nodeName": "n1",
                "source": {"persistentVolumeName": name},
            }
        },
        "DeviceClass": {"spec": {}},
        "ResourceSlice": {"spec": offered("n1", "g0")["spec"]},
        "DeviceTaintRule": {"spec": {"taint": {"key": "k", "effect": "None"}}},
        "ResourceClaim": {"spec": {}},
        "PodDisruptionBudget": {
            "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}}
        },
        "PriorityClass": {"value": 7},
        "Job": {"spec": {"suspend": True, "template": _template({"app": name}, restart="Never")}},
        "ElasticQuota": {"spec": {"min": {"cpu": "1"}, "max": {"cpu": "2"}}},
        "CompositePodGroup": {
            "spec": {
                "schedulingPolicy": {"basic": {}},
                "workloadRef": {"workloadName": "w", "templateName": "t"},
            }
        },
        "NodeResourceTopology": {"zones": [{"name": "node-0", "type": "Node"}]},
    }
    group_bodies = {
        "scheduling.k8s.io": group(name)["spec"],
        "scheduling.x-k8s.io": pod_group(name, least=2)["spec"],
    }
    resource = kind.resource
    body = bodies.get(resource.kind, {})
    if resource.kind == "PodGroup":
        body = {"spec": group_bodies[resource.group]}
    return of_resource(resource, name, body)


def _template(labels: dict[str, str], **spec: str) -> Manifest:
    pod = pod_manifest()["spec"]
    restart = {"restartPolicy": spec["restart"]} if spec else {}
    return {"metadata": {"labels": labels}, "spec": {**pod, **restart}}


def _controller(selector: Any) -> Manifest:
    labels = selector.get("matchLabels", selector)
    spec = {"replicas": 0, "selector": selector, "template": _template(labels)}
    return {"spec": spec}


def _kinds(cluster: VirtualCluster) -> list[Any]:
    parts = cluster.scheduler.parts
    names = {each._resource for each in parts.others}
    # A server with composite groups serves PodGroups in another version.
    groups = COMPOSITE_POD_GROUP if COMPOSITE_POD_GROUP.resource in names else POD_GROUP
    known = (*WATCHED, groups, DEVICE_TAINT_RULE, JOB, *CUSTOM)
    return [kind for kind in known if kind.resource in names]


async def sees_every_change(cluster: VirtualCluster) -> None:
    """See an object of each kind at once, long after the start."""
    await aio.sleep(100)
    # Pods come twice, those that have succeeded after the others.
    reflectors = {each._resource: each for each in reversed(cluster.scheduler.parts.others)}
    made = []
    for number, kind in enumerate(_kinds(cluster)):
        obj = _object(kind, number)
        namespace = obj["metadata"].get("namespace", "")
        await cluster.client.create(kind.resource, obj, namespace=namespace)
        made.append((kind.resource, (namespace, obj["metadata"]["name"])))
    await cluster.client.create(NODES, node_manifest("late"))
    await cluster.client.create(PODS, pod_manifest("late"), namespace="default")

    def unseen() -> list[str]:
        nodes = cluster.scheduler.parts.nodes.known_objects
        return [
            *(str(each.kind) for each, key in made if key not in reflectors[each].known_objects),
            *(["Node"] if ("", "late") not in nodes else []),
            *(["Pod"] if ("default", "late") not in reflectors[PODS].known_objects else []),
        ]

    try:
        await cluster.until(lambda: not unseen(), seconds=1)
    except AssertionError:
        raise AssertionError(f"not seen: {unseen()}") from None


async def sees_every_change_of_topologies(cluster: VirtualCluster) -> None:
    """See an object of each kind at once, after the definition of topologies was installed."""
    await cluster.client.create(CUSTOM_RESOURCE_DEFINITIONS, DEFINITION)
    await sees_every_change(cluster)


async def sees_what_is_there(cluster: VirtualCluster) -> None:
    """Place a pod; the cluster was listed before."""
    await cluster.create_objects(pod_manifest("p"))
    await cluster.until(lambda: bool(cluster.node_of("p")))


# --- deciding ---------------------------------------------------------------------------------


async def places_and_tells(cluster: VirtualCluster) -> None:
    """Bind a pod and write its Event."""
    await cluster.create_objects(pod_manifest("p"))
    await cluster.until(lambda: bool(cluster.node_of("p")))
    await aio.sleep(2)
    assert await cluster.events("p", reason="Scheduled")


async def tells_why_not(cluster: VirtualCluster) -> None:
    """Write the condition of a pod that has no place, and count its Events as a series."""
    await cluster.create_objects(pod_manifest("p", cpu="100"))
    await cluster.until(lambda: cluster.condition_of("p")[0] == "False")
    await aio.sleep(700)  # it is tried again after five minutes, without a cause
    told = await cluster.events("p", reason="FailedScheduling")
    assert max((each.get("series") or {}).get("count", 0) for each in told) > 1


async def evicts(cluster: VirtualCluster) -> None:
    """Evict a pod of low priority for another."""
    await cluster.create_objects(*[priority(*each) for each in (("low", -5), ("high", 1000))])
    await cluster.create_objects(low("victim"))
    await cluster.until(lambda: cluster.phase_of("victim") == "Running")
    await cluster.create_objects(high("preemptor"))
    await cluster.until(lambda: cluster.phase_of("preemptor") == "Running", seconds=3)


async def keeps_the_lease(cluster: VirtualCluster) -> None:
    """Lead for longer than a lease lasts, and tell who leads."""
    await aio.sleep(30)
    assert await cluster.events("moorage", reason="LeaderElection")
    lease: Any = await cluster.client.get(LEASES, "moorage", namespace=NAMESPACE)
    assert lease["spec"]["holderIdentity"] == "virtual"
    await sees_what_is_there(cluster)


async def takes_the_lease_over(cluster: VirtualCluster) -> None:
    """Take the lease when the scheduler that holds it releases it, before the next look."""
    leader = cluster.scheduler.elector
    assert leader is not None
    standby = elector_of(
        PLAIN.scheduler,
        leader._client.transport,
        identity="standby",
        clock=cluster.clock,
        streams=Streams(1),
    )
    assert standby is not None
    tasks = TaskOwner()
    try:
        tasks.spawn(standby.acquire(), name="standby")
        await aio.sleep(10)
        await leader.release()
        await aio.sleep(0.1)
        assert standby.leading
    finally:
        await tasks.cancel_all()


def loses_an_answer() -> Script:
    """Return a script: the first binding happens, and its answer is lost."""
    lost = iter((TransportError("the answer is lost"),))
    return lambda call: next(lost, None) if call.path.endswith("/binding") else None


def refuses_bindings() -> Script:
    """Return a script: the server does not bind."""
    return lambda call: _failure(500, "InternalError") if call.path.endswith("/binding") else None


def meets_another_writer() -> Script:
    """Return a script: the first patch of a claim comes too late."""
    answers = iter((_failure(409, "Conflict"),))

    def answer(call: Call) -> Answer | None:
        patched = call.method == "PATCH" and "/resourceclaims/" in call.path
        return next(answers, None) if patched else None

    return answer


def _failure(code: int, reason: str) -> Answer:
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "scripted"}
    return Answer(code, {}, encode({**status, "code": code, "reason": reason}))


async def finds_what_was_bound(cluster: VirtualCluster) -> None:
    """Look up a pod whose binding has no answer, and count it as bound."""
    await cluster.create_objects(pod_manifest("p"))
    await cluster.until(lambda: bool(cluster.node_of("p")))
    await aio.sleep(2)
    assert await cluster.events("p", reason="Scheduled")
    assert not await cluster.events("p", reason="FailedScheduling")


# --- volumes and devices ----------------------------------------------------------------------


async def binds_volumes(cluster: VirtualCluster) -> None:
    """Bind a local volume."""
    await cluster.create_objects(
        storage_class("local", provisioner="kubernetes.io/no-provisioner"),
        local_volume("v", "n2"),
        claim(storageClassName="local"),
        using("c"),
    )
    await cluster.until(lambda: cluster.node_of("p") == "n2")


async def has_volumes_made(cluster: VirtualCluster) -> None:
    """Have a volume provisioned for the chosen node."""
    await cluster.create_objects(storage_class("fast"), claim(storageClassName="fast"), using("c"))
    await cluster.until(lambda: bool(cluster.node_of("p")))


async def allocates_devices(cluster: VirtualCluster) -> None:
    """Allocate a device and reserve it."""
    await cluster.create_objects(
        device_class(), claim_template(), offered("n2", "g0"), using_device("p")
    )
    await cluster.until(lambda: cluster.node_of("p") == "n2")


async def allocates_devices_again(cluster: VirtualCluster) -> None:
    """Read a claim that has changed, and allocate at once."""
    await allocates_devices(cluster)
    assert not await cluster.events("p", reason="FailedScheduling")


async def makes_claims(cluster: VirtualCluster) -> None:
    """Make the claim of an extended resource."""
    await cluster.create_objects(device_class(extendedResourceName=_GPU), offered("n1", "g0", "g1"))
    await cluster.create_objects(_wanting("p"))
    await cluster.until(lambda: cluster.node_of("p") == "n1")
    assert [state(each) for each in claims(cluster).values()] == [(["g0", "g1"], ["p"])]


def _wanting(name: str) -> Manifest:
    asking = pod_manifest(name)
    amount = {_GPU: "2"}
    asking["spec"]["containers"][0]["resources"] = {"requests": amount, "limits": amount}
    return asking


async def takes_claims_back(cluster: VirtualCluster) -> None:
    """Delete the claim of an extended resource whose pod could not be bound."""
    await cluster.create_objects(device_class(extendedResourceName=_GPU), offered("n1", "g0", "g1"))
    await cluster.create_objects(_wanting("p"))
    await cluster.until(lambda: len(claims(cluster)) == 1)
    await cluster.until(lambda: not claims(cluster))


# --- groups, quotas ---------------------------------------------------------------------------


async def tells_about_groups(cluster: VirtualCluster) -> None:
    """Write the condition of a PodGroup."""
    await cluster.create_objects(group(least=2), member("a"), member("b"))
    await cluster.until(lambda: all(map(cluster.node_of, ("a", "b"))))
    shelf = cluster.server.store.shelf("podgroups.scheduling.k8s.io")
    await aio.sleep(1)
    record = shelf.get(("default", "g"))
    assert record is not None
    conditions = record.decode().get("status", {}).get("conditions", [])
    assert [each["type"] for each in conditions] == ["PodGroupScheduled"]


async def tells_about_composite_groups(cluster: VirtualCluster) -> None:
    """Write the condition of a CompositePodGroup."""
    live = LiveGroups(cluster)
    await live.composite("whole", 1)
    await live.group("part", 1, "whole")
    await live.pods("part", 1)
    await cluster.until(lambda: bool(cluster.node_of("part-0")))
    await aio.sleep(1)
    kind = COMPOSITE_POD_GROUP.resource
    found: Any = await cluster.client.get(kind, "whole", namespace="default")
    conditions = found.get("status", {}).get("conditions", [])
    assert [each["type"] for each in conditions] == ["CompositePodGroupInitiallyScheduled"]


_GPUS: Any = {"nvidia.com/gpu": "2"}
_WITH_GPUS = node_manifest("n1", **_GPUS)


async def shares_gpus(cluster: VirtualCluster) -> None:
    """Write the chosen device into an annotation."""
    asking = {"alibabacloud.com/gpu-count": "1", "alibabacloud.com/gpu-milli": "400"}
    await cluster.create_objects(pod_manifest("p", annotations=asking))
    await cluster.until(lambda: bool(cluster.node_of("p")))
    found: Any = cluster.stored_pod("p")
    assert found["metadata"]["annotations"]["alibabacloud.com/gpu-index"] == "0"


def _gates(*names: str) -> LoadedConfiguration:
    gates = feature_gates(dict.fromkeys(names, True))
    return msgspec.structs.replace(PLAIN, gates=gates)


SCENARIOS: dict[str, Scenario] = {
    "sees every change at once": Scenario(sees_every_change),
    "sees what is there, at an older server": Scenario(sees_what_is_there, streams_lists=False),
    "places a pod and tells of it": Scenario(places_and_tells),
    "tells why a pod has no place": Scenario(tells_why_not),
    "evicts a pod for another": Scenario(evicts, nodes=(node_manifest("n1"),)),
    "keeps the lease": Scenario(keeps_the_lease),
    "takes a released lease over at once": Scenario(takes_the_lease_over),
    "finds a binding whose answer was lost": Scenario(finds_what_was_bound, script=loses_an_answer),
    "binds a volume": Scenario(binds_volumes),
    "has a volume made": Scenario(has_volumes_made),
    "allocates a device": Scenario(allocates_devices),
    "allocates a device that has changed": Scenario(
        allocates_devices_again, script=meets_another_writer
    ),
    "makes the claim of an extended resource": Scenario(makes_claims),
    "takes back a claim that it made": Scenario(takes_claims_back, script=refuses_bindings),
}
"""The work of every scheduler."""

_GROUPS = _gates("GenericWorkload", "GangScheduling")
_COMPOSITES = msgspec.structs.replace(
    PLAIN, gates=feature_gates({**COMPOSITE_GATES, "DRADeviceTaintRules": False}, "1.37")
)
_HOLDING = parse_config(
    _HEAD
    + "- {plugins: {multiPoint: {enabled: [{name: Coscheduling}], "
    + "disabled: [{name: PrioritySort}]}}}\n---\n"
    + "apiVersion: moorage.dev/v1alpha1\nkind: MoorageConfiguration\nprofiles:\n"
    + "- {schedulerName: default-scheduler, holdBackAfterSeconds: 60}\n"
)
_FURTHER: dict[str, tuple[str, LoadedConfiguration]] = {
    "podGroups": ("PodGroups of Kubernetes", _GROUPS),
    "compositePodGroups": ("CompositePodGroups", _COMPOSITES),
    "coscheduling": ("PodGroups of scheduler-plugins", with_plugin("Coscheduling", "PrioritySort")),
    "elasticQuotas": ("elastic quotas", with_plugin("CapacityScheduling", "DefaultPreemption")),
    "deviceTaintRules": (
        "DeviceTaintRules",
        msgspec.structs.replace(PLAIN, gates=feature_gates({}, "1.37")),
    ),
    "jobs": ("Jobs", _HOLDING),
}

FURTHER: dict[str, dict[str, Scenario]] = {
    value: {
        f"sees every change of {what} at once": Scenario(sees_every_change, config=config),
        f"sees {what} that are there, at an older server": Scenario(
            sees_what_is_there, config=config, streams_lists=False
        ),
    }
    for value, (what, config) in _FURTHER.items()
}
"""Further work of a scheduler, by the chart's value that gives it the rights."""

FURTHER["podGroups"]["tells about PodGroups of Kubernetes"] = Scenario(
    tells_about_groups, config=_GROUPS
)
FURTHER["compositePodGroups"]["tells about CompositePodGroups"] = Scenario(
    tells_about_composite_groups, config=_COMPOSITES
)
FURTHER["gpuSharing"] = {
    "tells a pod its GPUs": Scenario(
        shares_gpus, nodes=(_WITH_GPUS,), config=with_plugin("GpuShare")
    )
}
_TOPOLOGIES = with_plugin("NodeResourceTopologyMatch")
FURTHER["nodeTopologies"] = {
    "sees every change of topologies of nodes at once": Scenario(
        sees_every_change_of_topologies, config=_TOPOLOGIES
    ),
    "sees topologies of nodes that are there, at an older server": Scenario(
        sees_every_change_of_topologies, config=_TOPOLOGIES, streams_lists=False
    ),
}


async def reads_loads(cluster: VirtualCluster) -> None:
    """Read the metrics of nodes from the API."""
    (report,) = cluster.scheduler.core.loads.by_source.values()
    await cluster.until(lambda: report.latest is not None)


FURTHER["nodeMetrics"] = {
    "reads the loads of nodes": Scenario(reads_loads, config=with_plugin("TargetLoadPacking"))
}
