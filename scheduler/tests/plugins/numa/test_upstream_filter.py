"""NodeResourceTopologyMatch, Filter: the cases of scheduler-plugins' own table tests.

The tables are those of ``pkg/noderesourcetopology/filter_test.go`` (v0.35), case by case and under
their names: inputs and results, from upstream's tests and not from a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from moorage.api.meta import ResourceList
from moorage.api.pod import Pod
from scheduler.tests.plugins.builders import rejections
from scheduler.tests.plugins.numa.builders import nodes_of, pod_of, topology

NAME = "NodeResourceTopologyMatch"
NIC, EXTENDED, PAGES = "vendor/nic1", "namespace/extended", "hugepages-2Mi"
OLD_NIC, NO_NIC = "vendor.com/old-nic-model", "vendor/notexistingnic"

CONTAINER = "cannot align container"
INIT = "cannot align init container"
POD = "cannot align pod"


def zone(cpu: str, memory: str, nic: str, pages: str = "") -> dict[str, str]:
    return {"cpu": cpu, "memory": memory, NIC: nic, **({PAGES: pages} if pages else {})}


def asks(cpu: str = "", memory: str = "", nic: str = "", **more: str) -> dict[str, str]:
    """Return requests; further ones by the names below."""
    names = {"extended": EXTENDED, "pages": PAGES, "old_nic": OLD_NIC, "no_nic": NO_NIC}
    amounts = {"cpu": cpu, "memory": memory, NIC: nic}
    amounts |= {names.get(key, "ephemeral-storage"): value for key, value in more.items()}
    return {name: amount for name, amount in amounts.items() if amount}


CONTAINER_LEVEL, POD_LEVEL = "SingleNUMANodeContainerLevel", "SingleNUMANodePodLevel"
NODES = [
    topology(
        "node1",
        {"node-0": zone("4", "8Gi", "10"), "node-1": zone("8", "8Gi", "10")},
        policy=CONTAINER_LEVEL,
    ),
    topology(
        "node2",
        {"node-0": zone("2", "4Gi", "5", "128Mi"), "node-1": zone("4", "4Gi", "2", "128Mi")},
        policy=CONTAINER_LEVEL,
    ),
    topology(
        "node3",
        {"node-0": zone("2", "4Gi", "5"), "node-1": zone("4", "4Gi", "2")},
        policy=POD_LEVEL,
    ),
    topology(
        "badly_formed_node",
        {"node-0": zone("2", "4Gi", "5"), "node-75": zone("4", "4Gi", "2")},
        policy=POD_LEVEL,
    ),
    topology(
        "extended",
        {"node-0": zone("4", "8Gi", "10"), "node-1": zone("8", "8Gi", "10")},
        policy=CONTAINER_LEVEL,
    ),
]
MORE: dict[str, ResourceList] = {"node2": {OLD_NIC: "4"}, "extended": {EXTENDED: "1"}}


def like(requests: Mapping[str, str], times: int = 1) -> Pod:
    """Return a pod whose limits are its requests."""
    return pod_of([requests] * times)


def below(requests: Mapping[str, str], **limits: str) -> Pod:
    """Return a pod with these limits, or with none."""
    return pod_of([requests], limits=[asks(**limits)])


TestNodeResourceTopology = [
    (
        "Guaranteed QoS, pod with extended resource fit",
        like(asks("2", "2Gi", "3", extended="1")),
        "extended",
        None,
    ),
    (
        "Guaranteed QoS, pod with extended resource no devices; pod fit",
        like(asks("2", "2Gi", extended="1")),
        "extended",
        None,
    ),
    ("Best effort QoS, pod fit", pod_of([]), "node1", None),
    (
        "Best effort QoS requesting devices, Pod Scope Topology policy; pod fit",
        like(asks(nic="5")),
        "node3",
        None,
    ),
    (
        "Best effort QoS requesting devices, Pod Scope Topology policy; pod doesn't fit",
        like(asks(nic="20")),
        "node3",
        POD,
    ),
    (
        "Best effort QoS requesting devices, Container Scope Topology policy; pod fit",
        like(asks(nic="5")),
        "node2",
        None,
    ),
    (
        "Best effort QoS requesting devices, Container Scope Topology policy; pod doesn't fit",
        like(asks(nic="20")),
        "node1",
        CONTAINER,
    ),
    (
        "Best effort QoS requesting devices and extended resources, Container Scope Topology "
        "policy; pod doesn't fit",
        like(asks(nic="10", extended="1")),
        "extended",
        None,
    ),
    (
        "Best effort QoS, requesting CPU, memory (enough on NUMA) and devices (not enough), "
        "Container Scope Topology policy; pod doesn't fit",
        below(asks("3", "3Gi", "11"), cpu="4", memory="4Gi", nic="11"),
        "node2",
        CONTAINER,
    ),
    (
        "Best effort QoS, requesting CPU, memory (enough on NUMA) and devices (not enough), "
        "Pod Scope Topology policy; pod doesn't fit",
        below(asks("1", "1Gi", "6"), cpu="2", memory="2Gi", nic="6"),
        "node3",
        POD,
    ),
    (
        "Best effort QoS requesting CPU, memory (enough on NUMA) and devices, Pod Scope "
        "Topology policy; pod fit",
        below(asks("1", "1Gi", "5"), cpu="2", memory="2Gi", nic="5"),
        "node3",
        None,
    ),
    (
        "Best effort QoS requesting CPU, memory (not enough on NUMA) and devices, Pod Scope "
        "Topology policy; pod fit",
        below(asks("19", "5Gi", "5"), cpu="20", memory="6Gi", nic="5"),
        "node3",
        None,
    ),
    (
        "Best effort QoS requesting CPU, memory (enough on NUMA) and devices, Container Scope "
        "Topology policy; pod fit",
        below(asks("3", "3Gi", "5"), cpu="4", memory="4Gi", nic="5"),
        "node2",
        None,
    ),
    (
        "Best effort QoS requesting CPU, memory (not enough on NUMA) and devices, Container "
        "Scope Topology policy; pod fit",
        below(asks("5", "5Gi", "5"), cpu="6", memory="6Gi", nic="5"),
        "node2",
        None,
    ),
    ("Guaranteed QoS, minimal, pod fit", like(asks("2", "2Gi")), "node1", None),
    ("Guaranteed QoS, minimal, saturating zone, pod fit", like(asks("8", "8Gi")), "node1", None),
    (
        "Guaranteed QoS, zero quantity of unavailable resource, pod fit",
        like(asks("2", "2Gi", "3", pages="0")),
        "node1",
        None,
    ),
    ("Guaranteed QoS, pod fit", like(asks("2", "2Gi", "3")), "node2", None),
    (
        "Guaranteed QoS, hugepages, pod fit",
        like(asks("2", "2Gi", "3", pages="64Mi")),
        "node2",
        None,
    ),
    ("Burstable QoS, pod fit", like(asks("4", nic="3")), "node2", None),
    (
        "Burstable QoS, requesting CPU and devices (not enough), Container Scope Topology "
        "policy; pod doesn't fit",
        like(asks("4", nic="11")),
        "node2",
        CONTAINER,
    ),
    (
        "Burstable QoS, requesting CPU and devices (not enough), Pod Scope Topology policy; "
        "pod doesn't fit",
        like(asks("2", nic="6")),
        "node3",
        POD,
    ),
    (
        "Burstable QoS requesting CPU (enough on NUMA) and devices, Pod Scope Topology policy; "
        "pod fit",
        like(asks("2", nic="5")),
        "node3",
        None,
    ),
    (
        "BurstableQoS requesting CPU (not enough on NUMA) and devices, Pod Scope Topology "
        "policy; pod fit",
        like(asks("20", nic="5")),
        "node3",
        None,
    ),
    (
        "Burstable QoS requesting CPU (enough on NUMA) and devices, Container Scope Topology "
        "policy; pod fit",
        like(asks("2", nic="5")),
        "node2",
        None,
    ),
    (
        "Burstable QoS requesting CPU (not enough on NUMA) and devices, Container Scope "
        "Topology policy; pod fit",
        like(asks("4", nic="5")),
        "node2",
        None,
    ),
    (
        "Burstable QoS, requesting memory (enough on NUMA) and devices (not enough), Container "
        "Scope Topology policy; pod doesn't fit",
        like(asks(memory="2Gi", nic="11")),
        "node2",
        CONTAINER,
    ),
    (
        "Burstable QoS, requesting memory (enough on NUMA) and devices (not enough), Pod Scope "
        "Topology policy; pod doesn't fit",
        like(asks(memory="2Gi", nic="6")),
        "node3",
        POD,
    ),
    (
        "Burstable QoS requesting memory (enough on NUMA) and devices, Pod Scope Topology "
        "policy; pod fit",
        like(asks(memory="2Gi", nic="5")),
        "node3",
        None,
    ),
    (
        "Burstable QoS requesting memory (not enough on NUMA) and devices, Pod Scope Topology "
        "policy; pod fit",
        like(asks(memory="5Gi", nic="5")),
        "node3",
        None,
    ),
    (
        "Burstable QoS requesting memory (enough on NUMA) and devices, Container Scope "
        "Topology policy; pod fit",
        like(asks(memory="4Gi", nic="5")),
        "node2",
        None,
    ),
    (
        "Burstable QoS requesting memory (not enough on NUMA) and devices, Container Scope "
        "Topology policy; pod fit",
        like(asks(memory="5Gi", nic="5")),
        "node2",
        None,
    ),
    (
        "Burstable QoS, requesting CPU, memory (enough on NUMA) and devices (not enough), "
        "Container Scope Topology policy; pod doesn't fit",
        below(asks("4", "4Gi", "11")),
        "node2",
        CONTAINER,
    ),
    (
        "Burstable QoS, requesting CPU, memory (enough on NUMA) and devices (not enough), Pod "
        "Scope Topology policy; pod doesn't fit",
        below(asks("2", "2Gi", "6")),
        "node3",
        POD,
    ),
    (
        "Burstable QoS requesting CPU, memory (enough on NUMA) and devices, Pod Scope Topology "
        "policy; pod fit",
        below(asks("2", "2Gi", "5")),
        "node3",
        None,
    ),
    (
        "Burstable QoS requesting CPU, memory (not enough on NUMA) and devices, Pod Scope "
        "Topology policy; pod fit",
        below(asks("20", "5Gi", "5")),
        "node3",
        None,
    ),
    (
        "Burstable QoS requesting CPU, memory (enough on NUMA) and devices, Container Scope "
        "Topology policy; pod fit",
        below(asks("4", "4Gi", "5")),
        "node2",
        None,
    ),
    (
        "Burstable QoS requesting CPU, memory (not enough on NUMA) and devices, Container "
        "Scope Topology policy; pod fit",
        below(asks("5", "5Gi", "5")),
        "node2",
        None,
    ),
    (
        "Burstable QoS with extended resources, pod fit",
        like(asks("4", nic="3", extended="1")),
        "extended",
        None,
    ),
    (
        "Guaranteed QoS, hugepages, pod doesn't fit",
        like(asks("2", "2Gi", "3", pages="256Mi")),
        "node2",
        CONTAINER,
    ),
    ("Guaranteed QoS, pod doesn't fit", like(asks("9", "1Gi", "3")), "node1", CONTAINER),
    (
        "Guaranteed QoS, pod fit, second of this name",
        like(asks("2", "1Gi", no_nic="0")),
        "node1",
        None,
    ),
    (
        "Guaranteed QoS Topology Scope, pod doesn't fit",
        like(asks("3", "1Gi", no_nic="0"), 3),
        "node3",
        POD,
    ),
    ("Guaranteed QoS Topology Scope, minimal, pod fit", like(asks("1", "1Gi")), "node3", None),
    (
        "Guaranteed QoS TopologyScope, minimal, saturating zone, pod fit",
        like(asks("2", "4Gi")),
        "badly_formed_node",
        None,
    ),
    (
        "Guaranteed QoS Topology Scope, pod fit",
        like(asks("1", "1Gi", no_nic="0"), 3),
        "node3",
        None,
    ),
    (
        "Guaranteed QoS Topology Scope, invalid node",
        like(asks("1", "1Gi", no_nic="0"), 3),
        "badly_formed_node",
        POD,
    ),
    (
        "Guaranteed QoS, hugepages, non-NUMA affine NIC, pod fit",
        like(asks("2", "2Gi", pages="64Mi", old_nic="3")),
        "node2",
        None,
    ),
    (
        "Guaranteed QoS, ephemeral-storage (non-NUMA), pod fit",
        like(asks("2", "2Gi", storage="100Mi")),
        "node2",
        None,
    ),
]

HOST0 = {
    "node-0": zone("30", "60Gi", "16", "384Mi"),
    "node-1": zone("32", "64Gi", "32", "512Mi"),
}
TestNodeResourceTopologyMultiContainerPodScope = [
    (
        "gu pod fits only on a numa node",
        [asks("2", "2Gi"), asks("4", "8Gi"), asks("26", "32Gi", "26", pages="512Mi")],
        None,
    ),
    (
        "gu pod does not fit - not enough CPUs available on any NUMA node",
        [asks("2", "2Gi"), asks("8", "8Gi"), asks("26", "26Gi", "26", pages="52Mi")],
        POD,
    ),
    (
        "gu pod does not fit - not enough memory available on any NUMA node",
        [asks("2", "4Gi"), asks("4", "16Gi"), asks("26", "52Gi", "26", pages="52Mi")],
        POD,
    ),
    (
        "gu pod does not fit - not enough Hugepages available on any NUMA node",
        [asks("2", "2Gi"), asks("4", "8Gi"), asks("26", "32Gi", "26", pages="3328Mi")],
        POD,
    ),
    (
        "gu pod does not fit - not enough devices available on any NUMA node",
        [asks("2", "2Gi"), asks("4", "8Gi"), asks("26", "26Gi", "52", pages="52Mi")],
        POD,
    ),
]
TestNodeResourceTopologyMultiContainerContainerScope = [
    ("[1][tier3] single container with good allocation - fit", [], [asks("2", "4G")], None),
    (
        "[2][tier3] single container with cpu over allocation - fit",
        [],
        [asks("40", "4G")],
        CONTAINER,
    ),
    (
        "[2][tier3] single container with memory over allocation - fit",
        [],
        [asks("2", "100G")],
        CONTAINER,
    ),
    (
        "[2][tier3] single container with cpu and memory over allocation - fit",
        [],
        [asks("40", "100G")],
        CONTAINER,
    ),
    (
        "[4][tier2] multi-containers with good allocation, spread across NUMAs - fit",
        [],
        [asks("20", "40G")] * 2,
        None,
    ),
    (
        "[4][tier1] multi containers with good devices and hugepages allocation, spread across "
        "NUMAs - fit",
        [],
        [asks("2", "6G", "16", pages="500Mi"), asks("2", "6G", "8", pages="50Mi")],
        None,
    ),
    (
        "[7][tier1] init container with cpu over allocation, multi-containers with good "
        "allocation - not fit",
        [asks("40", "40G")],
        [asks("1", "4G")] * 2,
        INIT,
    ),
    (
        "[7][tier1] init container with memory over allocation, multi-containers with good "
        "allocation - not fit",
        [asks("4", "70G")],
        [asks("1", "4G")] * 2,
        INIT,
    ),
    (
        "[11][tier1] init container with good allocation, multi-containers spread across NUMAs "
        "- fit",
        [asks("4", "10G")],
        [asks("20", "40G")] * 2,
        None,
    ),
    (
        "[17][tier1] multi init containers with good allocation, multi-containers spread "
        "across NUMAs - fit",
        [asks("4", "10G")] * 3,
        [asks("20", "40G"), asks("20", "40G"), asks("6", "10G")],
        None,
    ),
    (
        "[24][tier1] multi init containers with good allocation, multi-containers with over "
        "cpu allocation - not fit",
        [asks("30", "10G")] * 2,
        [asks("20", "40G"), asks("20", "40G"), asks("20", "6G")],
        CONTAINER,
    ),
    (
        "[27][tier1] multi init containers with good allocation, container with cpu over "
        "allocation - not fit",
        [asks("30", "10G")] * 2,
        [asks("35", "40G")],
        CONTAINER,
    ),
    (
        "[28][tier1] multi init containers with good allocation, multi-containers with good "
        "allocation - fit",
        [asks("30", "10G")] * 2,
        [asks("20", "40G")] * 2,
        None,
    ),
    (
        "[29][tier1] multi init containers when sum of their cpus requests (together) is over "
        "allocatable, multi-containers with good allocation - fit",
        [asks("30", "10G")] * 3,
        [asks("20", "40G"), asks("20", "40G"), asks("2", "6G")],
        None,
    ),
    (
        "[29][tier1] multi init containers when sum of their memory requests (together) is "
        "over allocatable, multi-containers with good allocation - fit",
        [asks("3", "50G")] * 3,
        [asks("20", "40G"), asks("20", "40G"), asks("2", "6G")],
        None,
    ),
    (
        "[32][tier1] multi init containers with over cpu allocation - not fit",
        [asks("40", "50G"), asks("3", "50G"), asks("3", "50G")],
        [asks("20", "40G"), asks("2", "6G")],
        INIT,
    ),
    (
        "[32][tier1] multi init containers with over memory allocation - not fit",
        [asks("20", "50G"), asks("40", "50G"), asks("3", "50G")],
        [asks("20", "40G"), asks("2", "6G")],
        INIT,
    ),
]


def _cases(table: Sequence[tuple[object, ...]]) -> list[object]:
    return [pytest.param(*row[1:], id=str(row[0])) for row in table]


@pytest.mark.parametrize(("waiting", "on", "reason"), _cases(TestNodeResourceTopology))
def test_node_resource_topology(waiting, on, reason):
    snapshot = nodes_of(NODES, more=MORE)
    row = snapshot.row_of(on)
    expected = {on: ("Unschedulable", (reason,))} if reason else {}
    assert rejections(NAME, snapshot, waiting, rows=[row]) == expected
    assert rejections(NAME, snapshot, waiting).get(on) == expected.get(on)


@pytest.mark.parametrize(
    ("containers", "reason"), _cases(TestNodeResourceTopologyMultiContainerPodScope)
)
def test_several_containers_in_the_scope_of_the_pod(containers, reason):
    snapshot = nodes_of([topology("host0", HOST0, policy=POD_LEVEL)])
    expected = {"host0": ("Unschedulable", (reason,))} if reason else {}
    assert rejections(NAME, snapshot, pod_of(containers)) == expected


@pytest.mark.parametrize(
    ("init", "containers", "reason"), _cases(TestNodeResourceTopologyMultiContainerContainerScope)
)
def test_several_containers_in_the_scope_of_containers(init, containers, reason):
    snapshot = nodes_of([topology("host0", HOST0, policy=CONTAINER_LEVEL)])
    expected = {"host0": ("Unschedulable", (reason,))} if reason else {}
    assert rejections(NAME, snapshot, pod_of(containers, init=init)) == expected
