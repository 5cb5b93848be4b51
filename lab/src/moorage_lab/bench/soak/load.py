"""The load of a soak: pods and nodes that come and go, and the checks at the end.

Pods arrive faster than they can be placed. Groups of nodes leave with their pods and come back
under the same names. A foreign binder binds pods without checking that they fit, including pods of
other schedulers. Kubelets refuse pods that do not fit. Every lost pod is replaced, as a workload
controller would do. At the end all changes stop, and every pod runs or has a reason why it cannot.

The load is an ordinary client: `run` runs it against processes, tests run it against a server
in the same loop. The caller that starts the load also starts the schedulers.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

from moorage.api.meta import ObjectReference
from moorage.api.pod import Pod
from moorage.api.resources import NODES, PODS
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import Clock
from moorage.base.errors import ConflictError, NotFoundError
from moorage.base.rng import Streams
from moorage.client.follow import Follower
from moorage.client.reflectors import Reflectors
from moorage.client.writes import Client
from moorage.nodeshapes.templates import NodeTemplate, default_nodes, name_of
from moorage_lab.bench.soak.plan import FOREIGN, NAMESPACE, SLOT, SoakPlan, SoakReport, soak_pod
from moorage_lab.bench.timing import Stopwatch
from moorage_sandbox.nodeagent.agents import NodeAgents

_IN_FLIGHT = 32  # concurrent creations
_LOOK_SECONDS = 0.5
_STILL_SECONDS = 3.0  # how long no change may happen; events wake pods within a second
_LEASE_SECONDS = 60  # no node controller needs faster renewals, which would only add load


class SoakLoad:
    """The load, and the counts for its report.

    Parameters
    ----------
    client
        Verbs of the API server.
    plan
        The load on the cluster.
    clock, streams
        Time and randomness.
    progress
        Called with a message at every step.
    """

    def __init__(
        self,
        client: Client,
        plan: SoakPlan,
        *,
        clock: Clock,
        streams: Streams,
        progress: Callable[[str], None] = lambda line: None,
    ) -> None:
        self._client = client
        self._plan = plan
        self._clock = clock
        self._streams = streams
        self._progress = progress
        self._rng = streams.stream("soak")
        self._failures: list[BaseException] = []
        self._tasks = TaskOwner(lambda _name, error: self._failures.append(error))
        self._groups = _groups(plan)
        self._present: dict[str, None] = {}
        self._agents: dict[int, asyncio.Task[None]] = {}
        self._pods: dict[int, Pod] = {}
        self._nodes_of: dict[str, str] = {}
        self._versions: Counter[int] = Counter()
        self._lost: dict[str, tuple[int, Pod]] = {}
        self._created = self._bound = self._evacuated = self._replaced = 0
        self._leaves = self._foreign_conflicts = 0
        self._refused: Counter[str] = Counter()
        self._moved: list[str] = []

    # --- what happens -----------------------------------------------------------------------

    async def start(self) -> None:
        """Start all nodes and watches."""
        for group in range(len(self._groups)):
            await self._come(group)
        made = Reflectors(
            self._client.transport, clock=self._clock, streams=self._streams, prefix="soak"
        )
        watch = made.reflector_of(PODS, Pod, Follower(self._observe, self._gone))
        self._tasks.spawn(watch.run(), name="watch pods")
        await watch.synced.wait()
        self._tasks.spawn(self._replace(), name="replace pods")
        self._progress(f"{self._plan.nodes} nodes are up")

    async def run(self) -> SoakReport:
        """Run the load, wait until all changes stop, and return the report."""
        watch = Stopwatch(self._clock.monotonic_ns)
        churning = TaskOwner(lambda _name, error: self._failures.append(error))
        calm = asyncio.Event()
        shaken = [
            churning.spawn(self._come_and_go(group, calm), name=f"group {group}")
            for group in range(1, len(self._groups))
        ]
        try:
            await self._create_all()
            self._progress(f"{self._created} pods are created")
            calm.set()
            await asyncio.gather(*shaken)
        finally:
            await churning.cancel_all()
        self._progress("all nodes are back")
        settled = await self._settle()
        return await self._report(settled=settled, seconds=watch.seconds)

    async def stop(self) -> None:
        """End nodes and watches."""
        await self._tasks.cancel_all()

    async def _create_all(self) -> None:
        slots = iter(range(self._plan.pods))
        pause = _IN_FLIGHT / self._plan.pods_per_second

        async def creator() -> None:
            for slot in slots:
                await self._create(slot)
                await aio.sleep(self._rng.uniform(0, 2 * pause))

        async with asyncio.TaskGroup() as group:
            for _ in range(_IN_FLIGHT):
                group.create_task(creator())

    async def _create(self, slot: int) -> None:
        version = self._versions[slot]
        self._versions[slot] += 1
        # A replaced pod has its old name or a new name; both cases are checked.
        name = f"pod-{slot}" if self._rng.random() < 0.5 else f"pod-{slot}-{version}"
        manifest = soak_pod(self._plan, slot, name)
        try:
            created = await self._client.create(PODS, manifest, namespace=NAMESPACE)
        except ConflictError:
            manifest["metadata"]["name"] = name = f"pod-{slot}-{version}-again"
            created = await self._client.create(PODS, manifest, namespace=NAMESPACE)
        self._created += 1
        mine = self._plan.scheduler_of(slot) == FOREIGN
        if mine or self._rng.random() < self._plan.stolen_share:
            uid = str(_metadata(created).get("uid"))
            await self._bind(ObjectReference(namespace=NAMESPACE, name=name, uid=uid))

    async def _bind(self, pod: ObjectReference) -> None:
        """Bind a pod without checking whether it fits."""
        node_name = self._rng.choice(list(self._present))
        try:
            await self._client.bind(pod, node_name=node_name)
        except (ConflictError, NotFoundError):
            self._foreign_conflicts += 1

    # --- nodes ------------------------------------------------------------------------------

    async def _come(self, group: int) -> None:
        nodes = self._groups[group]
        agents = NodeAgents(
            self._client,
            nodes,
            clock=self._clock,
            streams=self._streams,
            renew_seconds=_LEASE_SECONDS,
        )
        self._agents[group] = self._tasks.spawn(agents.run(), name=f"nodes of group {group}")
        await agents.registered.wait()
        self._present |= dict.fromkeys(name_of(each) for each in nodes)

    async def _leave(self, group: int) -> None:
        """Remove nodes; `_find_lost` finds their pods."""
        task = self._agents.pop(group)
        task.cancel()
        await asyncio.wait([task])
        for node in self._groups[group]:
            self._present.pop(name_of(node), None)
            await self._client.delete(NODES, name_of(node))
            self._leaves += 1
        self._find_lost()

    async def _come_and_go(self, group: int, calm: asyncio.Event) -> None:
        low, high = self._plan.stay_seconds
        while not calm.is_set():
            await aio.sleep(self._rng.uniform(low, high))
            await self._leave(group)
            await aio.sleep(self._rng.uniform(low, high))
            await self._come(group)

    # --- pods -------------------------------------------------------------------------------

    def _observe(self, pod: Pod) -> None:
        slot = _slot_of(pod)
        if slot is None:
            return
        self._pods[slot] = pod
        node_name, before = pod.spec.node_name, self._nodes_of.get(pod.uid, "")
        if before and before != node_name:
            self._moved.append(f"{pod.full_name} {pod.uid}: {before}, then {node_name or 'none'}")
        if node_name and not before:
            self._bound += 1
            self._nodes_of[pod.uid] = node_name
        if pod.status.phase == "Failed" and pod.uid not in self._lost:
            self._refused[pod.status.reason] += 1
            self._lost[pod.uid] = (slot, pod)

    def _gone(self, pod: Pod) -> None:
        slot = _slot_of(pod)
        if slot is not None and slot in self._pods and self._pods[slot].uid == pod.uid:
            del self._pods[slot]

    def _find_lost(self) -> None:
        """Record the pods of missing nodes, as the garbage collector of pods does."""
        for slot, pod in self._pods.items():
            away = pod.spec.node_name and pod.spec.node_name not in self._present
            if away and pod.uid not in self._lost:
                self._evacuated += 1
                self._lost[pod.uid] = (slot, pod)

    async def _replace(self) -> None:
        """Delete lost pods and create them again, until cancelled."""
        done: set[str] = set()
        while True:
            todo = [(uid, *entry) for uid, entry in self._lost.items() if uid not in done]
            for uid, slot, pod in todo:
                done.add(uid)
                target = ObjectReference(namespace=NAMESPACE, name=pod.name, uid=uid)
                await self._delete(target)
                await self._create(slot)
                self._replaced += 1
            await aio.sleep(_LOOK_SECONDS / 5)

    async def _delete(self, target: ObjectReference) -> None:
        try:
            await self._client.delete_pod(target, grace_seconds=0, check_uid=True)
        except ConflictError:
            return  # another pod of that name

    # --- the end ----------------------------------------------------------------------------

    async def _settle(self) -> bool:
        """Wait until all changes stop; False if they do not stop."""
        still = stalled = 0.0
        before: object = None
        while still < _STILL_SECONDS:
            if self._failures:
                raise self._failures[0]
            await aio.sleep(_LOOK_SECONDS)
            self._find_lost()
            now = (self._bound, self._created, self._replaced, len(list(self._unsettled())))
            moving = now != before
            before = now
            stalled = 0.0 if moving else stalled + _LOOK_SECONDS
            still = 0.0 if moving or now[3] else still + _LOOK_SECONDS
            if stalled >= self._plan.stall_seconds:
                return False
        return True

    def _unsettled(self) -> Iterator[int]:
        """Slots of which the pod neither runs nor has a reason why it cannot."""
        for slot in range(self._plan.pods):
            pod = self._pods.get(slot)
            if pod is None or not (_runs(pod) or _explanation(pod)):
                yield slot

    async def _report(self, *, settled: bool, seconds: float) -> SoakReport:
        pods = list(self._pods.values())
        listed = await self._client.list(PODS)
        nodes = await self._client.list(NODES)
        return SoakReport(
            settled=settled,
            seconds=seconds,
            nodes=len(_items(nodes)),
            pods=len(_items(listed)),
            created=self._created,
            bound=self._bound,
            running=sum(_runs(pod) for pod in pods),
            explained=sum(bool(_explanation(pod)) and not _runs(pod) for pod in pods),
            unexplained=len(list(self._unsettled())),
            refused=dict(sorted(self._refused.items())),
            evacuated=self._evacuated,
            replaced=self._replaced,
            node_departures=self._leaves,
            foreign_conflicts=self._foreign_conflicts,
            bound_twice=tuple(self._moved),
            overcommitted=tuple(_overcommitted(self._plan, _items(listed))),
        )


def _groups(plan: SoakPlan) -> list[list[NodeTemplate]]:
    """Return the nodes that stay, then the groups that come and go."""
    resources = {"cpu": str(plan.node_cpu), "memory": "64Gi", "pods": "110"}
    nodes = default_nodes(plan.nodes, resources=resources)
    size = max(1, plan.nodes * plan.moving_percent // 100 // plan.groups)
    moving = [nodes[start : start + size] for start in range(0, size * plan.groups, size)]
    return [nodes[size * plan.groups :], *moving]


def _overcommitted(plan: SoakPlan, pods: Sequence[Mapping[str, object]]) -> list[str]:
    """Return the overcommitted nodes, by the server's objects."""
    taken: Counter[str] = Counter()
    for pod in pods:
        spec, status = pod.get("spec"), pod.get("status")
        assert isinstance(spec, dict), pod
        ended = isinstance(status, dict) and status.get("phase") in ("Failed", "Succeeded")
        if spec.get("nodeName") and not ended:
            labels = _metadata(pod).get("labels")
            assert isinstance(labels, dict), pod
            taken[str(spec["nodeName"])] += plan.cpu_milli_of(int(labels[SLOT]))
    return sorted(name for name, milli in taken.items() if milli > plan.node_cpu * 1000)


def _runs(pod: Pod) -> bool:
    return pod.status.phase == "Running" and bool(pod.spec.node_name)


def _explanation(pod: Pod) -> str:
    """Return why a pod without a node waits, "" if no reason was recorded."""
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.reason == "Unschedulable":
            return "" if pod.spec.node_name else condition.message
    return ""


def _slot_of(pod: Pod) -> int | None:
    slot = pod.metadata.labels.get(SLOT)
    return None if slot is None else int(slot)


def _metadata(obj: Mapping[str, object]) -> Mapping[str, object]:
    metadata = obj["metadata"]
    assert isinstance(metadata, dict), obj
    return metadata


def _items(listed: Mapping[str, object]) -> list[dict[str, object]]:
    items = listed["items"]
    assert isinstance(items, list), listed
    return items
