"""Pods that wait for their victims keep what they were promised, whoever comes meanwhile.

Small clusters with the real controllers in virtual time; the victims stop slowly. What a nominated
pod is promised is judged by totals: how many pods were evicted, and when it is placed.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest

from moorage.api.resources import ELASTIC_QUOTAS, PODS
from moorage.config.load import parse_config
from moorage_sandbox.testing.builders import Manifest, node_manifest
from scheduler.tests.plugins.quotas.builders import quota_manifest
from tests.scenarios.company import Company, made, play, replicas

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
HOST, ZONE = "kubernetes.io/hostname", "zone"


def away_from(labels: Mapping[str, str], key: str = HOST) -> Manifest:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": dict(labels)}}
    return {"podAntiAffinity": {REQUIRED: [term]}}


def near(labels: Mapping[str, str], key: str = ZONE) -> Manifest:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": dict(labels)}}
    return {"podAffinity": {REQUIRED: [term]}}


def spread(labels: Mapping[str, str], key: str = HOST) -> list[Manifest]:
    return [
        {
            "maxSkew": 1,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": dict(labels)},
        }
    ]


T = {"app": "t"}
ON_1 = {"kubernetes.io/hostname": "n1"}
TWO_NODES = [
    node_manifest("n1", cpu="8", labels={"zone": "a"}),
    node_manifest("n2", cpu="8", labels={"zone": "a"}),
]


@pytest.mark.parametrize(
    ("key", "other"),
    [
        pytest.param(HOST, False, id="on the same node"),
        pytest.param(HOST, True, id="on the same node, with such a pod on another node"),
        pytest.param(ZONE, False, id="on another node of the zone"),
    ],
)
def test_a_nominated_pod_keeps_the_pods_away_that_it_repels(key: str, other: bool) -> None:
    async def scenario(company: Company) -> None:
        if other:
            await company.create(
                made(
                    "other",
                    cpu="1",
                    node_selector={"kubernetes.io/hostname": "n2"},
                    affinity=away_from(T),
                )
            )
            await company.run("other")
        await company.create(made("t1", stops=5, cpu="1", labels=T, node_selector=ON_1))
        await company.run("t1")
        await company.create(
            made("h", high=True, cpu="1", node_selector=ON_1, affinity=away_from(T, key))
        )
        await company.nominate("h", "n1")
        place = {} if key == ZONE else ON_1
        await company.create(made("w", cpu="1", labels=T, node_selector=place))
        await company.run("h")
        await company.sleep(20)
        assert company.placed("w") == [""]
        assert company.evicted == ["t1"]

    play(scenario, nodes=TWO_NODES)


@pytest.mark.parametrize("count", [1, 12])
def test_a_set_that_remakes_its_pods_does_not_outrun_a_pod_that_repels_them(count: int) -> None:
    async def scenario(company: Company) -> None:
        await company.create(
            replicas(count, made("t", stops=1, cpu="500m", labels=T, node_selector=ON_1))
        )
        await company.run("t-", count)
        await company.create(
            made("h", high=True, cpu="1", node_selector=ON_1, affinity=away_from(T))
        )
        seconds = await company.run("h")
        assert seconds < 4
        await company.sleep(10)
        assert len(company.evicted) == count
        assert company.placed("t-") == [""] * count

    play(scenario, nodes=TWO_NODES)


def test_a_pod_that_repels_a_nominated_pod_leaves_the_zone_to_it() -> None:
    async def scenario(company: Company) -> None:
        await company.create(made("v", stops=5, cpu="8", node_selector=ON_1))
        await company.run("v")
        await company.create(made("h", high=True, cpu="8", labels=T, node_selector=ON_1))
        await company.nominate("h", "n1")
        await company.create(made("w", cpu="1", affinity=away_from(T, ZONE)))
        await company.run("h")
        await company.sleep(20)
        assert company.placed("w") == [""]
        assert company.evicted == ["v"]

    play(scenario, nodes=TWO_NODES)


def test_the_first_of_a_group_that_wants_to_be_together_is_found_where_it_is_nominated() -> None:
    nodes = [
        node_manifest("n1", cpu="8", labels={"zone": "a"}),
        node_manifest("n2", cpu="8", labels={"zone": "b"}),
    ]

    async def scenario(company: Company) -> None:
        await company.create(made("v", stops=5, cpu="6", node_selector=ON_1))
        await company.run("v")
        together = near(T)
        await company.create(
            made("h1", high=True, cpu="4", labels=T, affinity=together, node_selector=ON_1)
        )
        await company.nominate("h1", "n1")
        await company.create(made("h2", high=True, cpu="2", labels=T, affinity=together))
        await company.run("h", 2)
        assert company.placed("h") == ["n1", "n1"]
        assert company.evicted == ["v"]

    play(scenario, nodes=nodes)


def claim(name: str, mode: str = "ReadWriteOncePod") -> list[Manifest]:
    volume = {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}}
    bound = {"namespace": "default", "name": name}
    spec: dict[str, Any] = {
        "accessModes": [mode],
        "capacity": {"storage": "1Gi"},
        "storageClassName": "",
        "csi": {"driver": "d", "volumeHandle": name},
    }
    wanted: dict[str, Any] = {
        "accessModes": [mode],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "",
        "volumeName": name,
    }
    pvc = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": bound, "spec": wanted}
    return [{**volume, "spec": spec}, {**pvc, "status": {"phase": "Bound"}}]


def using(name: str) -> list[Manifest]:
    return [{"name": "v", "persistentVolumeClaim": {"claimName": name}}]


def test_a_claim_for_one_pod_is_kept_for_the_pod_that_evicted_its_user() -> None:
    async def scenario(company: Company) -> None:
        await company.create(*claim("c"))
        await company.sleep(1)
        low = made("t", stops=2, cpu="1", volumes=using("c"))
        await company.create(replicas(3, low))
        await company.run("t-")
        await company.create(made("h", high=True, cpu="1", volumes=using("c")))
        seconds = await company.run("h")
        assert seconds < 5
        await company.sleep(10)
        assert len(company.evicted) == 1
        assert company.placed("t-") == ["", "", ""]

    play(scenario, nodes=TWO_NODES)


@pytest.mark.parametrize(
    "stops",
    [
        pytest.param((4, 4, 4), id="that stop alike"),
        pytest.param((1, 4, 8), id="that stop at other times on each node"),
        pytest.param((8, 1, 1), id="of which one node's stop last"),
    ],
)
def test_preemptors_that_share_a_spread_with_their_victims_evict_one_each(
    stops: tuple[int, ...],
) -> None:
    nodes = [node_manifest(f"n{i}", cpu="2") for i in (1, 2, 3)]

    async def scenario(company: Company) -> None:
        for index, stop in enumerate(stops, 1):
            place = {HOST: f"n{index}"}
            low = made(f"l{index}", stops=stop, cpu="1", labels=T, node_selector=place)
            await company.create(replicas(4, low))
        await company.run("l", 6)
        high = made("h", high=True, cpu="1", labels=T, topologySpreadConstraints=spread(T))
        await company.create(replicas(6, high))
        seconds = await company.run("h-", 6, seconds=60)
        await company.sleep(10)
        assert len(company.evicted) == 6
        assert company.placed("h-") == ["n1", "n1", "n2", "n2", "n3", "n3"]
        assert seconds < 2 * max(stops) + 4

    play(scenario, nodes=nodes)


GPU = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {{enabled: [{{name: GpuShare}}, {{name: {policy}, weight: 10}}]}}
"""
GPU_COUNT, GPU_MILLI = "alibabacloud.com/gpu-count", "alibabacloud.com/gpu-milli"


def gpus(name: str, count: int, milli: int, **fields: Any) -> Manifest:
    asked = {GPU_COUNT: str(count), GPU_MILLI: str(milli)}
    return made(name, cpu="10m", annotations=asked, **fields)


def gpu_node(name: str, count: int) -> Manifest:
    found = node_manifest(name, cpu="64")
    amounts = {**found["status"]["allocatable"], "alibabacloud.com/gpu-count": str(count)}
    return {**found, "status": {**found["status"], "capacity": amounts, "allocatable": amounts}}


POLICIES = pytest.mark.parametrize("policy", ["GpuBestFit", "GpuPacking", "GpuRandom"])


@POLICIES
def test_the_device_that_two_victims_leave_one_after_the_other_is_kept(policy: str) -> None:
    async def scenario(company: Company) -> None:
        await company.create(gpus("fast", 1, 500, stops=0))
        await company.run("fast")
        await company.create(gpus("slow", 1, 500, stops=4))
        await company.run("slow")
        await company.create(gpus("w", 1, 500))
        await company.sleep(1)
        await company.create(gpus("big", 1, 1000, high=True))
        seconds = await company.run("big")
        await company.sleep(5)
        assert company.evicted == ["fast", "slow"]
        assert company.placed("w") == [""]
        assert seconds < 7

    config = parse_config(GPU.format(policy=policy))
    play(scenario, nodes=[gpu_node("n1", 1)], config=config)


@POLICIES
@pytest.mark.parametrize(
    ("count", "milli", "evicted"),
    [
        pytest.param(8, 1000, 32, id="all devices"),
        pytest.param(2, 1000, 8, id="two devices"),
        pytest.param(1, 500, 2, id="a half of one"),
    ],
)
def test_shares_that_are_made_again_do_not_outrun_a_pod_that_evicted_them(
    policy: str, count: int, milli: int, evicted: int
) -> None:
    async def scenario(company: Company) -> None:
        for index, stops in enumerate((0, 1, 3)):
            await company.create(replicas(18, gpus(f"l{index}", 1, 250, stops=stops)))
        await company.run("l", 32)
        await company.create(gpus("big", count, milli, high=True))
        seconds = await company.run("big")
        await company.sleep(10)
        assert len(company.evicted) == evicted
        assert seconds < 7

    config = parse_config(GPU.format(policy=policy))
    play(scenario, nodes=[gpu_node("n1", 8)], config=config)


@POLICIES
def test_several_pods_that_wait_for_devices_of_one_node_get_one_each(policy: str) -> None:
    async def scenario(company: Company) -> None:
        for index, stops in enumerate((0, 2, 4, 6)):
            await company.create(replicas(3, gpus(f"l{index}", 1, 500, stops=stops)))
        await company.run("l", 8)
        await company.create(replicas(3, gpus("big", 1, 1000, high=True)))
        seconds = await company.run("big", 3)
        await company.sleep(10)
        assert len(company.evicted) == 6
        assert seconds < 10

    config = parse_config(GPU.format(policy=policy))
    play(scenario, nodes=[gpu_node("n1", 4)], config=config)


@pytest.mark.parametrize("nodes", [1, 2])
def test_shares_of_a_borrower_do_not_outrun_the_namespace_with_the_guarantee(nodes: int) -> None:
    """The quotas are no bound for the shares: only what is promised keeps them away."""

    async def scenario(company: Company) -> None:
        for namespace, cpu in (("a", 4), ("b", 0)):
            metadata = {"name": namespace}
            await company.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
            quota = quota_manifest(namespace, {"cpu": cpu})
            await company.cluster.client.create(ELASTIC_QUOTAS, quota, namespace=namespace)
        await company.sleep(1)
        for index, stops in enumerate((0, 5)):
            share = gpus(f"l{index}", 1, 250, stops=stops)
            await company.create(replicas(12, share, namespace="b"))
        await company.sleep(8)
        await company.create(replicas(1, gpus("h", 1, 1000), namespace="a"))
        await company.sleep(30)
        assert company.placed("h") != [""]
        assert len(company.evicted) == 4

    quota = "{name: CapacityScheduling}], disabled: [{name: DefaultPreemption}]"
    config = parse_config(GPU.format(policy="GpuBestFit").replace("]}", f", {quota}}}"))
    devices = [gpu_node(f"n{i}", 4 // nodes) for i in range(nodes)]
    play(scenario, nodes=devices, config=config)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("pod", id="a pod that raises the minimum"),
        pytest.param("node", id="the other zone goes"),
    ],
)
def test_a_preemptor_that_spread_keeps_from_evicting_is_woken_when_the_spread_changes(
    change: str,
) -> None:
    nodes = [
        node_manifest("n1", cpu="8", labels={"zone": "a"}),
        node_manifest("n2", cpu="8", labels={"zone": "b"}),
    ]
    z = {"app": "z"}
    on = {name: {"kubernetes.io/hostname": name} for name in ("n1", "n2")}

    async def scenario(company: Company) -> None:
        await company.create(replicas(8, made("l", cpu="1", node_selector=on["n1"])))
        await company.create(replicas(8, made("u", cpu="1", high=True, node_selector=on["n2"])))
        await company.create(made("z1", labels=z, node_name="n1", high=True))
        await company.run("l", 8)
        await company.run("u", 8)
        constraint = spread(z, ZONE)
        await company.create(
            made("z2", cpu="1", high=True, labels=z, topologySpreadConstraints=constraint)
        )
        await company.sleep(4)
        assert company.placed("z2") == [""]
        if change == "pod":
            await company.create(made("z3", labels=z, node_name="n2"))
        else:
            await company.cluster.delete_node("n2")
        await company.run("z2", seconds=20)
        assert company.placed("z2") == ["n1"]
        assert len(company.evicted) == 1

    play(scenario, nodes=nodes)


# -- what else a nominated pod is promised --------------------------------------------------------


def cpu_of(name: str, node: str = "n1", *, stops: float = 5) -> Manifest:
    """Return a pod of low priority that fills a node and stops slowly."""
    return made(name, stops=stops, cpu="8", node_selector={HOST: node})


def test_a_host_port_is_kept_for_the_pod_that_evicted_its_user() -> None:
    async def scenario(company: Company) -> None:
        await company.create(replicas(4, made("l", stops=2, host_ports=[80])))
        await company.run("l", 2)
        await company.create(made("h", high=True, host_ports=[80]))
        seconds = await company.run("h")
        await company.sleep(10)
        assert len(company.evicted) == 1
        assert seconds < 5

    play(scenario, nodes=TWO_NODES)


PREEMPTING = {
    "DefaultPreemption": "",
    "PreemptionToleration": "{name: PreemptionToleration}",
    "CapacityScheduling": "{name: CapacityScheduling}",
}


@pytest.mark.parametrize("nodes", [1, 12])
@pytest.mark.parametrize("plugin", PREEMPTING)
def test_no_pod_is_evicted_in_place_of_one_that_leaves_anyway(plugin: str, nodes: int) -> None:
    """The pod that has the port is the most important one, and would be spared before others."""

    async def scenario(company: Company) -> None:
        for index in range(nodes):
            there: dict[str, Any] = {"nodeSelector": {HOST: f"n{index}"}, "cpu": "1"}
            await company.create(made(f"first-{index}", stops=5, host_ports=[80], **there))
        await company.run("first-", nodes)
        await company.sleep(2)
        await company.create(
            *(made(f"low-{index}", cpu="1", stops=5) for index in range(2 * nodes))
        )
        await company.run("low-", 2 * nodes)
        for index in range(nodes):
            await company.create(made(f"port-{index}", high=True, host_ports=[80], cpu="1"))
        for index in range(nodes):
            await company.create(made(f"room-{index}", high=True, cpu="1"))
        await company.run("port-", nodes)
        await company.run("room-", nodes)
        ports = sorted(f"first-{index}" for index in range(nodes))
        assert (company.evicted[:nodes], len(company.evicted)) == (ports, 2 * nodes)

    enabled = PREEMPTING[plugin]
    disabled = "[{name: DefaultPreemption}]" if enabled else "[]"
    text = f"""
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {{multiPoint: {{enabled: [{enabled}], disabled: {disabled}}}}}
"""
    cluster_nodes = [node_manifest(f"n{i}", cpu="3", labels={HOST: f"n{i}"}) for i in range(nodes)]
    play(scenario, nodes=cluster_nodes, config=parse_config(text, source=plugin))


def test_an_attachment_is_kept_for_the_pod_that_evicted_its_user() -> None:
    limits = {"drivers": [{"name": "d", "nodeID": "n1", "allocatable": {"count": 2}}]}
    csi_node = {"apiVersion": "storage.k8s.io/v1", "kind": "CSINode", "spec": limits}

    async def scenario(company: Company) -> None:
        await company.create({**csi_node, "metadata": {"name": "n1"}})
        for name in ("c1", "c2", "c3", "c4"):
            await company.create(*claim(name, "ReadWriteOnce"))
        await company.sleep(1)
        await company.create(made("v1", stops=5, volumes=using("c1"), node_selector=ON_1))
        await company.create(made("v2", stops=5, volumes=using("c2"), node_selector=ON_1))
        await company.run("v", 2)
        await company.create(made("h", high=True, volumes=using("c3"), node_selector=ON_1))
        await company.nominate("h", "n1")
        await company.create(made("w", volumes=using("c4"), node_selector=ON_1))
        await company.run("h")
        await company.sleep(10)
        assert company.placed("w") == [""]
        assert len(company.evicted) == 1

    play(scenario, nodes=TWO_NODES)


def local_volume(node: str) -> Manifest:
    terms = [{"matchExpressions": [{"key": HOST, "operator": "In", "values": [node]}]}]
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "capacity": {"storage": "1Gi"},
        "storageClassName": "local",
        "local": {"path": "/disk"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": terms}},
    }
    metadata = {"name": f"disk-{node}"}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}


def local_claim(name: str) -> Manifest:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "local",
    }
    metadata = {"name": name, "namespace": "default"}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": spec,
    }


LOCAL = {
    "apiVersion": "storage.k8s.io/v1",
    "kind": "StorageClass",
    "metadata": {"name": "local"},
    "provisioner": "kubernetes.io/no-provisioner",
    "volumeBindingMode": "WaitForFirstConsumer",
}


def device_slice(node: str) -> Manifest:
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d", "nodeName": node, "pool": pool, "devices": [{"name": "gpu-0"}]}
    metadata = {"name": f"slice-{node}"}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": metadata,
        "spec": spec,
    }


def device_claim(name: str) -> Manifest:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": 1}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"devices": {"requests": [{"name": "one", "exactly": exactly}]}},
    }


DEVICES = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "DeviceClass",
    "metadata": {"name": "gpu"},
    "spec": {},
}


def with_device(pod: Manifest, claim_name: str) -> Manifest:
    spec = pod["spec"]
    spec["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim_name}]
    resources = spec["containers"][0].setdefault("resources", {})
    resources["claims"] = [{"name": "gpu"}]
    return pod


async def volumes_for_two(company: Company) -> None:
    await company.create(LOCAL, local_volume("n1"), local_claim("c1"), local_claim("c2"))


async def devices_for_two(company: Company) -> None:
    await company.create(DEVICES, device_slice("n1"), device_claim("c1"), device_claim("c2"))


def with_volume(pod: Manifest, claim_name: str) -> Manifest:
    pod["spec"]["volumes"] = using(claim_name)
    return pod


@pytest.mark.parametrize(
    ("prepare", "wanting"),
    [
        pytest.param(volumes_for_two, with_volume, id="a local volume"),
        pytest.param(devices_for_two, with_device, id="a device"),
    ],
)
@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_claim_is_kept_for_the_pod_that_evicts_for_its_cpu(
    prepare: Callable[[Company], Awaitable[None]],
    wanting: Callable[[Manifest, str], Manifest],
    is_deleted: bool,
) -> None:
    """One volume or device, two claims: once the nominated pod is deleted, the other gets it."""

    async def scenario(company: Company) -> None:
        await prepare(company)
        await company.create(cpu_of("v1"))
        await company.run("v1")
        await company.create(wanting(made("h", high=True, cpu="8"), "c1"))
        await company.nominate("h", "n1")
        await company.create(wanting(made("w"), "c2"))
        await company.sleep(2)
        assert company.placed("w") == [""]
        if is_deleted:
            await company.cluster.client.delete(PODS, "h", namespace="default")
            await company.run("w", seconds=10)
            return
        await company.run("h")
        await company.sleep(10)
        assert company.placed("w") == [""]
        assert company.evicted == ["v1"]

    play(scenario, nodes=TWO_NODES)
