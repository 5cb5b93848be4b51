"""What a scheduler does not see happen: it is cut off, told twice, or not at all; and old servers.

Server, agents and scheduler in virtual time. Whatever went unseen, in the end the scheduler
believes what the server has, and every pod has a node or was told why not. The mapping of single
changes to cluster events is in ``scheduler/tests/api/test_changes.py``, the reflector alone in
``scheduler/tests/client/test_reflector.py``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from moorage.api.codec import decode
from moorage.api.meta import ObjectReference
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import NODES
from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.base.errors import MoorageError, TransportError
from moorage.base.rng import Random, Streams
from moorage.client.transport import Answer, Call, LineStream, Transport
from moorage.config.feature_gates import feature_gates
from moorage.config.gate_table import GENERIC_WORKLOAD
from moorage.config.load import parse_config
from moorage.config.own import LoadedConfiguration
from moorage.state.compare import compare
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from moorage_sandbox.testing.faults import FaultyTransport
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.client.fakes import ScriptedTransport, Stream, failure
from scheduler.tests.service.test_faulty_watches import Fates, stop_faults

HEAD = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def objects(cluster: VirtualCluster, plural: str, kind: type[Any]) -> list[Any]:
    records = cluster.server.store.shelf(plural).records("")
    return [decode(kind, msgspec.json.encode(each.decode())) for each in records]


def assert_belief_is_right(cluster: VirtualCluster) -> None:
    """Hold cache and queue against the server itself, not against what the watches said."""
    core = cluster.scheduler.core
    core.cache.validate()
    core.queue.validate()
    pods = [p for p in objects(cluster, "pods", Pod) if p.status.phase not in _ENDED]
    found = compare(core.cache, core.queue, pods, objects(cluster, "nodes", Node))
    assert found.empty, found
    for pod in pods:
        _, reason, _ = cluster.condition_of(pod.name)
        assert pod.spec.node_name or reason in ("Unschedulable", "SchedulingGated"), pod.name


_ENDED = ("Succeeded", "Failed")


# --- cut off ----------------------------------------------------------------------------------


class Cut:
    """A connection that can be down: nothing goes through, and streams break at their next word."""

    def __init__(self, inner: Transport) -> None:
        self.inner = inner
        self.down = False
        self.expired = False
        self.broken: set[str] = set()
        self.relisted: list[str] = []

    async def request(self, call: Call) -> Answer:
        if self.down:
            raise TransportError("cut off")
        return await self.inner.request(call)

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[LineStream]:
        if self.down:
            raise TransportError("cut off")
        inner, kind = self.inner, call.path.rpartition("/")[2]
        if self.expired and kind in self.broken and ("sendInitialEvents", "true") not in call.query:
            self.broken.discard(kind)
            self.relisted.append(kind)
            gone = {"type": "ERROR", "object": failure(410, "Expired")}
            inner = ScriptedTransport(Stream(gone))
        async with inner.stream(call) as lines:
            yield _Lines(self, lines, kind)

    async def close(self) -> None:
        await self.inner.close()


class _Lines:
    def __init__(self, cut: Cut, inner: LineStream, kind: str) -> None:
        self._cut, self._inner, self._kind = cut, inner, kind
        self.status = inner.status
        self.headers: Mapping[str, str] = inner.headers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for line in self._inner:
            if self._cut.down:
                self._cut.broken.add(self._kind)
                raise TransportError("connection reset")
            yield line


def on(node_name: str) -> dict[str, Any]:
    return {"node_selector": {"kubernetes.io/hostname": node_name}}


async def delete_pod(cluster: VirtualCluster, name: str) -> None:
    target = ObjectReference(namespace="default", name=name)
    await cluster.client.delete_pod(target, grace_seconds=0)


async def bound_pod_deleted(cluster: VirtualCluster) -> None:
    await delete_pod(cluster, "full")


async def pod_replaced(cluster: VirtualCluster) -> None:
    await delete_pod(cluster, "full")
    await cluster.create_objects(pod_manifest("full", cpu="1", **on("n1")))


async def waiting_pod_deleted(cluster: VirtualCluster) -> None:
    await delete_pod(cluster, "waiting")


async def waiting_pod_replaced(cluster: VirtualCluster) -> None:
    await delete_pod(cluster, "waiting")
    await cluster.create_objects(pod_manifest("waiting", cpu="1", **on("n2")))


async def node_recreated_larger(cluster: VirtualCluster) -> None:
    await cluster.delete_node("n1")
    await cluster.create_objects(node_manifest("n1", cpu="64"))


async def node_recreated_smaller(cluster: VirtualCluster) -> None:
    await cluster.delete_node("n1")
    await cluster.create_objects(node_manifest("n1", cpu="1"))
    await delete_pod(cluster, "full")


async def node_deleted(cluster: VirtualCluster) -> None:
    await cluster.delete_node("n1")


async def bound_by_somebody_else(cluster: VirtualCluster) -> None:
    await cluster.client.bind(ObjectReference(namespace="default", name="waiting"), node_name="n2")


async def node_tainted(cluster: VirtualCluster) -> None:
    await delete_pod(cluster, "full")
    taints = [{"key": "a", "effect": "NoSchedule"}]
    await cluster.patch_object(NODES, "n1", {"spec": {"taints": taints}})


async def node_grown(cluster: VirtualCluster) -> None:
    room = {"status": {"allocatable": {"cpu": "64"}, "capacity": {"cpu": "64"}}}
    await cluster.client.patch(NODES, "n1", msgspec.json.encode(room), subresource="status")


Change = Callable[[VirtualCluster], Awaitable[None]]

UNSEEN: list[Any] = [
    # What happened while it was cut off; where the waiting pod is afterwards, None if it is gone.
    pytest.param(bound_pod_deleted, "n1", id="a pod that filled a node was deleted"),
    pytest.param(pod_replaced, "n1", id="it was deleted, and a smaller one of its name came"),
    pytest.param(waiting_pod_deleted, None, id="the waiting pod was deleted"),
    pytest.param(waiting_pod_replaced, "n2", id="the waiting pod came again and wants less"),
    pytest.param(node_recreated_larger, "n1", id="the node came again, larger"),
    pytest.param(node_recreated_smaller, "", id="the node came again, smaller"),
    pytest.param(node_deleted, "", id="the node is gone"),
    pytest.param(bound_by_somebody_else, "n2", id="somebody else bound the waiting pod"),
    pytest.param(node_tainted, "", id="room came, and a taint"),
    pytest.param(node_grown, "n1", id="the node grew"),
]


@pytest.mark.parametrize("expired", [False, True], ids=["watches go on", "410: lists anew"])
@pytest.mark.parametrize(("change", "place"), UNSEEN)
def test_a_scheduler_takes_in_the_changes_of_the_time_it_was_cut_off(
    change: Change, place: str | None, expired: bool
) -> None:
    clock = ManualClock()
    cuts: list[Cut] = []

    def around(inner: Transport) -> Transport:
        cuts.append(Cut(inner))
        return cuts[0]

    async def main() -> None:
        nodes = [node_manifest(name, cpu="4") for name in ("n1", "n2")]
        config = parse_config(f"{HEAD}leaderElection: {{leaderElect: false}}")
        async with VirtualCluster(clock, nodes=nodes, config=config, around=around) as cluster:
            await cluster.create_objects(pod_manifest("full", cpu="3", **on("n1")))
            await cluster.until(lambda: cluster.node_of("full") == "n1")
            await cluster.create_objects(pod_manifest("waiting", cpu="3", **on("n1")))
            await cluster.until(lambda: cluster.condition_of("waiting")[1] == "Unschedulable")
            await aio.sleep(5)
            cuts[0].down, cuts[0].expired = True, expired
            await change(cluster)
            await aio.sleep(20)
            cuts[0].down = False
            # Below five minutes: it was woken by what it learned, not by the flush.
            await aio.sleep(100)
            assert (cluster.stored_pod("waiting") is None) == (place is None)
            assert cluster.node_of("waiting") == (place or "")
            assert_belief_is_right(cluster)

    run_virtual(main(), clock)
    assert cuts[0].broken or cuts[0].relisted, "something was missed"
    assert bool(cuts[0].relisted) == expired


# --- everything at random -----------------------------------------------------------------------


class SlowBinds(FaultyTransport):
    """Watches that lose and repeat; bindings under way for up to two seconds, some unanswered."""

    def __init__(self, inner: Transport, rng: Random) -> None:
        super().__init__(inner)
        self.rng = rng
        self.fates = Fates(rng)
        self.faults.fate = self.fates.draw
        self.slow, self.unanswered = True, 0

    async def request(self, call: Call) -> Answer:
        if self.slow and call.path.endswith("/binding"):
            await aio.sleep(self.rng.random() * 2)
            if self.rng.random() < 0.2:
                self.unanswered += 1
                self.faults.lost["/binding"] += 1
        return await super().request(call)


async def shake(cluster: VirtualCluster, rng: Random) -> dict[str, int]:
    """Make pods and nodes come, change, go, and come again under the same few names."""
    done: dict[str, int] = {}
    for _ in range(70):
        pod, node = rng.choice("abcdefgh"), rng.choice(["n1", "n2", "n3"])
        there = cluster.server.store.shelf("nodes").get(("", node)) is not None
        known = cluster.stored_pod(pod) is not None
        what = rng.choice(["pod", "pod", "pod", "node", "label", "foreign"])
        try:
            if what == "pod" and known:
                await delete_pod(cluster, pod)
            elif what == "pod":
                await cluster.create_objects(
                    pod_manifest(pod, cpu=rng.choice(["1", "2", "4", "64"]))
                )
            elif what == "node" and there:
                await cluster.delete_node(node)
            elif what == "node":
                await cluster.create_objects(node_manifest(node, cpu=rng.choice(["2", "4", "8"])))
            elif what == "foreign" and known and there:
                target = ObjectReference(namespace="default", name=pod)
                await cluster.client.bind(target, node_name=node)
            elif what == "label" and there:
                labels = {"metadata": {"labels": {"n": str(rng.randrange(9))}}}
                await cluster.patch_object(NODES, node, labels)
            done[what] = done.get(what, 0) + 1
        except MoorageError:
            continue  # bound already, or gone
        await aio.sleep(rng.random() * 1.5)
    return done


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_missed_doubled_or_answered_late_belief_is_mended(seed: int) -> None:
    clock, rng = ManualClock(), Streams(seed).stream("faults")
    made: list[SlowBinds] = []
    done: list[Mapping[str, int]] = []

    def around(inner: Transport) -> Transport:
        made.append(SlowBinds(inner, rng))
        return made[0]

    async def main() -> None:
        # Nobody plays these nodes: a kubelet that refuses a pod is not covered here.
        async with VirtualCluster(clock, around=around, seed=seed) as cluster:
            await cluster.create_objects(
                *[node_manifest(name, cpu="4") for name in ("n1", "n2", "n3")]
            )
            done.append(await shake(cluster, Streams(seed).stream("changes")))
            made[0].slow = False
            await stop_faults(made[0])
            await cluster.create_objects(node_manifest("last"), pod_manifest("last", cpu="1"))
            await aio.sleep(400)
            assert_belief_is_right(cluster)
            uids = [pod.uid for pod in objects(cluster, "pods", Pod)]
            assert len(uids) == len(set(uids))

    run_virtual(main(), clock)
    assert sorted(done[0]) == ["foreign", "label", "node", "pod"]
    assert {"cut", "expired", "lost", "told", "twice"} == made[0].fates.counts.keys()
    assert made[0].unanswered


# --- servers of the past --------------------------------------------------------------------------


SERVED: Mapping[str, Mapping[str, int]] = {
    "v1": dict.fromkeys(
        (
            *("events", "namespaces", "nodes", "persistentvolumeclaims", "persistentvolumes"),
            *("pods", "replicationcontrollers", "services"),
        ),
        0,
    ),
    "apps/v1": {"replicasets": 9, "statefulsets": 9},
    "coordination.k8s.io/v1": {"leases": 14},
    "events.k8s.io/v1": {"events": 19},
    "policy/v1": {"poddisruptionbudgets": 21},
    "scheduling.k8s.io/v1": {"priorityclasses": 14},
    "storage.k8s.io/v1": {
        "storageclasses": 6,
        "volumeattachments": 13,
        "csinodes": 17,
        "csidrivers": 18,
        "csistoragecapacities": 24,
        "volumeattributesclasses": 34,
    },
    "resource.k8s.io/v1": dict.fromkeys(
        ("deviceclasses", "resourceclaims", "resourceclaimtemplates", "resourceslices"), 34
    ),
}
"""What discovery of Kubernetes 1.28 to 1.36 tells a scheduler: group and version, resource, and the
minor version that serves it by default first. Before 1.34 devices are in versions that are off and
that a scheduler of 1.36 does not read: v1alpha2 to 1.30, v1alpha3 from 1.31, v1beta1 from 1.32,
v1beta2 from 1.33."""

ALPHA = {"scheduling.k8s.io/v1alpha2": {"podgroups": 36, "workloads": 36}}
"""What 1.36 serves besides, where it is switched on."""

DEVICES = {
    *(("resource.k8s.io/v1", "deviceclasses"), ("resource.k8s.io/v1", "resourceclaims")),
    ("resource.k8s.io/v1", "resourceslices"),
}
GROUPS = {("scheduling.k8s.io/v1alpha2", "podgroups")}
NEWEST_GROUPS = {
    ("scheduling.k8s.io/v1beta1", "podgroups"),
    ("scheduling.k8s.io/v1alpha3", "podgroups"),
}


class OldServer:
    """Serves what a version of Kubernetes serves."""

    def __init__(self, inner: Transport, minor: int, *, alpha: bool) -> None:
        self.inner = inner
        table = {**SERVED, **ALPHA} if alpha else SERVED
        self.served = {
            (version, plural)
            for version, plurals in table.items()
            for plural, since in plurals.items()
            if since <= minor
        }
        # apiserver/pkg/features/kube_features.go: WatchList is on in 1.32, off in 1.33, on again.
        self.lists_as_watch = minor == 32 or minor >= 34
        self.refused: list[str] = []
        self.lacked: set[tuple[str, str]] = set()

    def _lacks(self, call: Call) -> bool:
        asked = _resource_of(call.path)
        if asked is None or asked in self.served:
            return False
        self.lacked.add(asked)
        return True

    async def request(self, call: Call) -> Answer:
        if self._lacks(call):
            return Answer(404, {}, msgspec.json.encode(failure(404, "NotFound")))
        return await self.inner.request(call)

    @asynccontextmanager
    async def stream(self, call: Call) -> AsyncIterator[LineStream]:
        carrier = self.inner
        if self._lacks(call):
            carrier = ScriptedTransport(Stream(failure(404, "NotFound"), status=404))
        elif ("sendInitialEvents", "true") in call.query and not self.lists_as_watch:
            self.refused.append(call.path)
            carrier = ScriptedTransport(Stream(failure(422, "Invalid"), status=422))
        async with carrier.stream(call) as lines:
            yield lines

    async def close(self) -> None:
        await self.inner.close()


def _resource_of(path: str) -> tuple[str, str] | None:
    """Return group and version, and the resource, of a path; None for others than objects."""
    root, *rest = path.strip("/").split("/")
    if root not in ("api", "apis"):
        return None
    parts = 1 if root == "api" else 2
    version, rest = "/".join(rest[:parts]), rest[parts:]
    if not rest:  # discovery of a version
        return None
    return version, rest[2] if rest[0] == "namespaces" and len(rest) > 2 else rest[0]


@pytest.mark.parametrize(
    ("minor", "alpha", "missing"),
    [
        *(
            pytest.param(minor, False, DEVICES | GROUPS, id=f"1.{minor} has no devices yet")
            for minor in range(28, 34)
        ),
        *(
            pytest.param(minor, False, GROUPS, id=f"1.{minor} serves no groups unless told to")
            for minor in range(34, 37)
        ),
        pytest.param(36, True, set[tuple[str, str]](), id="1.36 with everything"),
    ],
)
def test_a_server_of_each_version_is_scheduled_for(
    minor: int, alpha: bool, missing: set[tuple[str, str]], caplog: pytest.LogCaptureFixture
) -> None:
    """With the gate of pod groups on: a kind that only the newest version serves."""
    clock = ManualClock()
    servers: list[OldServer] = []

    def around(inner: Transport) -> Transport:
        servers.append(OldServer(inner, minor, alpha=alpha))
        return servers[0]

    gates = feature_gates({GENERIC_WORKLOAD: True})
    config = msgspec.structs.replace(LoadedConfiguration(), gates=gates)

    async def main() -> None:
        nodes: list[Manifest] = [node_manifest("n1", cpu="4")]
        async with VirtualCluster(clock, nodes=nodes, config=config, around=around) as cluster:
            await cluster.create_objects(pod_manifest("p", cpu="3"), pod_manifest("big", cpu="64"))
            await cluster.until(lambda: cluster.phase_of("p") == "Running")
            await cluster.until(lambda: cluster.condition_of("big")[1] == "Unschedulable")
            vip = pod_manifest("vip", cpu="3", priorityClassName="system-cluster-critical")
            await cluster.create_objects(vip)
            await cluster.until(lambda: cluster.phase_of("vip") == "Running")
            assert cluster.stored_pod("p") is None
            assert_belief_is_right(cluster)

    run_virtual(main(), clock)
    told = [each.getMessage() for each in caplog.records if "does not serve" in each.getMessage()]
    assert sorted(told) == sorted(
        f"the API server does not serve {plural} of {version}: going on without, and asking again "
        "every 60 seconds"
        for version, plural in missing
    )
    # The newest versions of groups are asked for first; that they are missing is no news.
    assert servers[0].lacked == missing | NEWEST_GROUPS
    assert bool(servers[0].refused) == (minor < 32 or minor == 33)
