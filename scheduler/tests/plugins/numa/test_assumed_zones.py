"""Topologies that lag behind: nodes left out, assumed use, foreign pods, fingerprints.

Cases named after functions of scheduler-plugins ``pkg/noderesourcetopology/cache`` (v0.35:
overreserve_test.go, discardreserved_test.go, resourcerequests/exclusive_test.go) and fingerprints
of ``podfingerprint/testdata`` have upstream's inputs and results; they are from upstream's tests,
not from a run.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import from_dict
from moorage.api.custom.node_topology import NodeResourceTopology
from moorage.api.pod import Pod
from moorage.base.clock import ManualClock
from moorage.base.errors import ConfigError
from moorage.config.scheduler_plugins.numa import NodeResourceTopologyMatchArgs, TopologyCache
from moorage.framework.cycle_state import CycleState
from moorage.plugins.in_tree import in_tree_registry
from moorage.plugins.numa.fingerprints import fingerprint, xxh64
from moorage.plugins.numa.requests import has_exclusive_resources
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.plugins.builders import handle, make
from scheduler.tests.plugins.builders import pod as one_container
from scheduler.tests.plugins.numa.builders import nodes_of, pod_of, topology

NAME = "NodeResourceTopologyMatch"
POLICY = "SingleNUMANodeContainerLevel"
NIC = "vendor.com/nic1"
SIGNED = "nodeTopologyPodsFingerprint"
POD1 = "pfp0v0019e0420efb37746c6"  # namespace1/pod1
EIGHT = {"cpu": "8", "memory": "16Gi"}


def default_topology(
    name: str = "node1", left: tuple[str, str] = ("30", "60Gi"), **attributes: str
) -> NodeResourceTopology:
    zone = {"cpu": "30", "memory": "60Gi", NIC: "16"}
    second = {"cpu": left[0], "memory": left[1], NIC: "16"}
    return topology(name, {"node-0": zone, "node-1": second}, policy=POLICY, attributes=attributes)


def running(
    name: str = "pod1", *, scheduler: str = "default-scheduler", phase: str = "Running"
) -> Pod:
    amounts = {"resources": {"requests": EIGHT, "limits": EIGHT}}
    spec = {"nodeName": "node1", "schedulerName": scheduler}
    return one_container(name, container=amounts, status={"phase": phase}, **spec)


class World:
    """One node with its topology, and the plugin with a cache."""

    def __init__(self, **args: object) -> None:
        cache = TopologyCache(**args.pop("cache", {}))  # type: ignore[arg-type]
        args = {"cache_resync_period_seconds": 5, **args}
        self.args = NodeResourceTopologyMatchArgs(cache=cache, **args)  # type: ignore[arg-type]
        self.snapshot = nodes_of([default_topology()])
        given = handle(self.snapshot)
        assert isinstance(given.clock, ManualClock)
        self.clock = given.clock
        entry = in_tree_registry().find(NAME)
        assert entry is not None
        self.plugin: Any = entry.make(self.args, given)
        self.reasons = given.reasons
        self.fits("1")

    def fits(self, cpu: str) -> str:
        """Return why a Guaranteed pod does not fit on the node; empty where it does."""
        pod = PodInfo(pod_of([{"cpu": cpu, "memory": "1Gi"}]))
        answer = self.plugin.filter(CycleState(), pod, self.snapshot.all())
        return "" if answer is None else ", ".join(self.reasons.reasons(int(answer.reason_n[0])))

    def left(self) -> tuple[int, ...]:
        """Return the cpus that are left on each NUMA node."""
        zones = self.plugin._zones.zones("node1")
        return tuple(dict(each.available)["cpu"] // 1000 for each in zones.numa_nodes)

    def tell(self, *left: str, **attributes: str) -> None:
        sizes = (left[0], left[1]) if left else ("30", "60Gi")
        self.snapshot.listers.node_topologies.put(default_topology("node1", sizes, **attributes))

    def reserve(self, name: str = "pod1") -> PodInfo:
        pod = PodInfo(running(name))
        assert self.plugin.reserve(CycleState(), pod, "node1").ok
        return pod

    def later(self, seconds: int = 5) -> None:
        self.clock.advance_ns(seconds * 10**9)


CANNOT, STALE = "cannot align container", "invalid node topology data"


def test_get_cached_nrt_copy_reserve():
    world = World()
    world.reserve()
    assert world.left() == (22, 22)
    assert (world.fits("22"), world.fits("23")) == ("", CANNOT)


def test_get_cached_nrt_copy_reserve_release():
    world = World()
    pod = world.reserve()
    world.plugin.unreserve(CycleState(), pod, "node1")
    assert world.left() == (30, 30)
    assert world.fits("30") == ""


def test_a_release_without_a_reservation_changes_nothing():
    world = World()
    world.plugin.unreserve(CycleState(), PodInfo(running()), "node1")
    assert world.left() == (30, 30)


def test_resync_no_pod_fingerprint():
    world = World()
    world.reserve()
    assert world.fits("23") == CANNOT  # marks the node
    world.tell("22", "44Gi")
    world.later()
    assert world.fits("23") == CANNOT


def namespace1_pod1(world: World) -> None:
    """Have the pod of upstream's fingerprint run on the node."""
    body = {
        "metadata": {"name": "pod1", "namespace": "namespace1", "uid": "u"},
        "spec": {
            "nodeName": "node1",
            "schedulerName": "default-scheduler",
            "containers": [{"name": "c", "resources": {"requests": EIGHT, "limits": EIGHT}}],
        },
        "status": {"phase": "Running"},
    }
    pod = from_dict(Pod, body)
    assert world.plugin.reserve(CycleState(), PodInfo(pod), "node1").ok
    world.snapshot.table.add_pod(pod, "node1")


def test_resync_match_fingerprint():
    world = World()
    namespace1_pod1(world)
    assert world.fits("23") == CANNOT
    world.tell("22", "44Gi", **{SIGNED: POD1})
    assert world.fits("23") == CANNOT  # the period is not over
    world.later()
    assert world.fits("23") == ""
    assert world.left() == (30, 22)


def test_a_topology_that_has_counted_other_pods_is_not_believed():
    world = World()
    namespace1_pod1(world)
    assert world.fits("23") == CANNOT
    world.tell("22", "44Gi", **{SIGNED: fingerprint([("namespace1", "pod2")])})
    world.later()
    assert world.fits("23") == CANNOT


def test_node_with_foreign_pods():
    world = World()
    world.snapshot.table.add_pod(running("other", scheduler="elsewhere"), "node1")
    assert world.fits("1") == STALE
    world.tell(**{SIGNED: fingerprint([("default", "other")])})
    world.later()
    assert world.fits("1") == ""


@pytest.mark.parametrize(
    ("detect", "reason"),
    [("All", STALE), ("OnlyExclusiveResources", STALE), ("None", "")],
)
def test_which_foreign_pods_count(detect: str, reason: str):
    world = World(cache={"foreign_pods_detect": detect})
    world.snapshot.table.add_pod(running("other", scheduler="elsewhere"), "node1")
    assert world.fits("1") == reason


def test_a_pod_of_the_profile_is_not_foreign():
    world = World()
    world.snapshot.table.add_pod(running(), "node1")
    assert world.fits("1") == ""


@pytest.mark.parametrize(("scope", "reason"), [("All", ""), ("OnlyResources", CANNOT)])
def test_changed_settings_of_the_kubelet_count_with_the_next_look(scope: str, reason: str):
    world = World(cache={"resync_scope": scope})
    world.tell(topologyManagerPolicy="none")
    world.later()
    assert world.fits("31") == reason


def test_a_deleted_topology_counts_no_longer():
    world = World()
    lister = world.snapshot.listers.node_topologies
    topology_ = lister.get("node1")
    assert topology_ is not None
    lister.remove(topology_)
    assert world.fits("31") == ""


def test_discard_reserved_nodes():
    world = World(discard_reserved_nodes=True)
    first, second = world.reserve("a"), world.reserve("b")
    assert world.fits("1") == STALE
    world.plugin.post_bind(CycleState(), first, "node1")
    assert world.fits("1") == STALE
    world.plugin.unreserve(CycleState(), second, "node1")
    assert world.fits("1") == ""


@pytest.mark.parametrize(
    ("names", "signed"),
    [
        pytest.param([("namespace1", "pod1")], POD1, id="overreserve_test.go"),
        pytest.param(
            [("production", each) for each in ("jaeger-dpgjk", "nginx-rt684", "envoy-g9m22")],
            "pfp0v001607b76a0e9d3aeb4",
            id="compat-tiny-3pods-1ns",
        ),
        pytest.param(
            [
                ("analytics", "controller-69dkj"),
                ("kube-public", "subscriber-tq6v7"),
                ("kube-public", "transformer-hfbng"),
                ("kube-public", "validator-c6pn5"),
                ("kube-system", "proxy-wszrd"),
                ("middleware", "processor-jkrl4"),
                ("network", "gateway-vsll5"),
                ("network", "importer-kzdfr"),
                ("network", "importer-q5vt9"),
                ("staging", "prometheus-bwgbn"),
            ],
            "pfp0v001567144e4a561bb5a",
            id="compat-small-10pods-3ns",
        ),
    ],
)
def test_fingerprints(names: list[tuple[str, str]], signed: str):
    assert fingerprint(names) == fingerprint(reversed(names)) == signed


def test_the_hash_of_nothing_is_that_of_xxhash():
    assert xxh64(b"") == 0xEF46DB3751D8E999


FPGA = "veryfast.io/fpga"


@pytest.mark.parametrize(
    ("requests", "exclusive"),
    [
        pytest.param({"cpu": "4", "memory": "2Gi"}, True, id="single-container-gu-no-devs"),
        pytest.param({FPGA: "1"}, True, id="single-container-devs-only"),
        pytest.param({**EIGHT, FPGA: "1"}, True, id="single-container-gu-core-and-devs"),
        pytest.param({"cpu": "8", FPGA: "1"}, True, id="single-container-nongu-cpus-and-devs"),
        pytest.param({"cpu": "8"}, False, id="single-container-nongu-cpus-only"),
    ],
)
def test_are_exclusive_for_pod(requests: dict[str, str], exclusive: bool):
    assert has_exclusive_resources(pod_of([requests]), {FPGA}) is exclusive


def test_a_device_that_no_numa_node_reports_is_shared():
    assert not has_exclusive_resources(pod_of([{FPGA: "1"}]), ())


@pytest.mark.parametrize(
    ("cache", "fault"),
    [
        ({"foreign_pods_detect": "Some"}, 'cache.foreignPodsDetect: Unsupported value: "Some"'),
        ({"resync_method": "x"}, 'cache.resyncMethod: Unsupported value: "x"'),
        ({"informer_mode": "x"}, 'cache.informerMode: Unsupported value: "x"'),
        ({"resync_scope": "x"}, 'cache.resyncScope: Unsupported value: "x"'),
    ],
)
def test_values_that_upstream_ignores_are_refused(cache: dict[str, str], fault: str):
    args = NodeResourceTopologyMatchArgs(cache=TopologyCache(**cache))
    with pytest.raises(ConfigError, match=fault):
        make(NAME, Snapshot(), args=args)
