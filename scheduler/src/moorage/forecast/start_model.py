"""The queue in short of a cluster in memory: room, run times, and nodes that Filters leave open.

Filters that judge what does not change by itself are asked once for each kind of waiting pods:
names, selectors, cordons, taints, volumes, features. Room is counted in the roll-outs. Spread
constraints, affinity between pods, ports and devices change as pods come and go; they are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import msgspec

from moorage.api.pod import Pod
from moorage.engine.attempt import CycleError
from moorage.engine.inquiry import in_question, inquire
from moorage.estimates.known_ends import (
    ENDING_POLICIES,
    deadline_seconds,
    declared_seconds,
    elapsed_seconds,
)
from moorage.estimates.laws import RunTimeLaw
from moorage.estimates.queue_model import (
    Amounts,
    QueueModel,
    RunningPod,
    Shape,
    WaitingUnit,
)
from moorage.estimates.run_classes import classes_of
from moorage.estimates.run_time_book import RunTimeBook
from moorage.framework.subjects import Subject
from moorage.service.core import Core
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES

_LASTING: Final = (
    Subject.NODE_NAME,
    Subject.NODE_AFFINITY,
    Subject.CORDON,
    Subject.TAINTS,
    Subject.VOLUMES,
    Subject.FEATURES,
)


class StartModel(msgspec.Struct, frozen=True, kw_only=True):
    """The start of roll-outs, with what an answer names.

    Parameters
    ----------
    queue
        The model; its target is the pod in question, or its group.
    position
        Place of the target in the queue, from 1.
    unknown
        Number of running pods that may end, and about whose run times nothing is known.
    must_end
        Running pods of which one end, alone, would let the target start.
    lacks_members
        Whether the group of the pod has too few members.
    """

    queue: QueueModel
    position: int
    unknown: int
    must_end: tuple[str, ...]
    lacks_members: bool = False


class ModelBuilder:
    """Builds the model of one question.

    Parameters
    ----------
    core
        The deciding half over the cluster; pods without a node need not be in it.
    book
        Learned run times.
    now_ns
        The moment, wall-clock nanoseconds.
    is_over
        Whether no more Filters should be asked: kinds of pods that are left then are taken to fit
        every node that has room.
    """

    def __init__(
        self, core: Core, book: RunTimeBook, *, now_ns: int, is_over: Callable[[], bool]
    ) -> None:
        self._core = core
        self._book = book
        self._now_ns = now_ns
        self._is_over = is_over
        self._laws: dict[tuple[object, ...], RunTimeLaw | None] = {}
        self._shapes: list[Shape] = []
        self._shape_of: dict[bytes, int] = {}
        self._resources: tuple[str, ...] = ()

    def build(
        self, pending: Sequence[Pod], target: Pod, arrivals: Sequence[Pod], rate: float
    ) -> StartModel:
        """Return the model.

        Parameters
        ----------
        pending
            The pods without a node, in the order of the queue.
        target
            The pod in question, one of them.
        arrivals
            The pods that came last.
        rate
            How often a pod comes, a second.
        """
        infos = {pod.uid: PodInfo(pod) for pod in (target, *pending, *arrivals)}
        names = {name for info in infos.values() for name in _amounts(info)}
        self._resources = tuple(sorted(names))
        self._shape(infos[target.uid])  # the first to be asked about
        units, lacks = self._units(pending, infos)
        ordered = sorted(units, key=lambda each: each[1].rank)
        target_at = next(i for i, (pods, _) in enumerate(ordered) if target.uid in pods)
        running, unknown = self._running()
        queue = QueueModel(
            free=self._free(),
            shapes=self._shapes,
            running=running,
            queue=[unit for _, unit in ordered],
            target=target_at,
            arrivals=self._arrivals(arrivals if rate > 0 else (), infos),
            arrivals_a_second=rate,
        )
        return StartModel(
            queue=queue,
            position=1 + sum(len(unit.shapes) for _, unit in ordered[:target_at]),
            unknown=unknown,
            must_end=_single_ends(queue),
            lacks_members=target.uid in lacks,
        )

    # --- waiting pods -----------------------------------------------------------------------------

    def _units(
        self, pending: Sequence[Pod], infos: Mapping[str, PodInfo]
    ) -> tuple[list[tuple[set[str], WaitingUnit]], set[str]]:
        """Return what waits, with the uids of each unit, and the members of incomplete groups."""
        groups, members = self._core.snapshot.groups, dict[GroupKey, list[Pod]]()
        units, lacks = list[tuple[set[str], WaitingUnit]](), set[str]()
        for pod in pending:
            key = groups.key_of(pod) if groups.has_source else None
            if key is None:
                units.append(({pod.uid}, self._unit([infos[pod.uid]])))
            else:
                members.setdefault(key, []).append(pod)
        for key, pods in members.items():
            terms = groups.terms_of(pods[0])
            least = 1
            if terms is not None and terms.gang:
                least = max(1, terms.minimum - groups.members(key).placed)
            if len(pods) < least:
                lacks |= {pod.uid for pod in pods}
                least = len(pods)
            first = {pod.uid for pod in pods[:least]}
            units.append((first, self._unit([infos[pod.uid] for pod in pods[:least]])))
            units += [({pod.uid}, self._unit([infos[pod.uid]])) for pod in pods[least:]]
        return units, lacks

    def _unit(self, infos: Sequence[PodInfo]) -> WaitingUnit:
        shapes = tuple(self._shape(info) for info in infos)
        laws = tuple(self._law(info) for info in infos)
        rank = -max(info.pod.spec.priority or 0 for info in infos)
        return WaitingUnit(shapes, laws, rank, infos[0].pod.full_name)

    def _shape(self, info: PodInfo) -> int:
        pod, amounts = info.pod, self._amounts_of(info)
        chosen = (
            pod.spec.scheduler_name,
            amounts,
            pod.spec.node_selector,
            pod.spec.affinity,
            pod.spec.tolerations,
            pod.spec.volumes,
        )
        key = msgspec.msgpack.encode(chosen)
        index = self._shape_of.get(key)
        if index is None:
            nodes = None if self._is_over() and self._shapes else self._nodes(info)
            index = self._shape_of[key] = len(self._shapes)
            self._shapes.append(Shape(amounts, nodes))
        return index

    def _nodes(self, info: PodInfo) -> frozenset[int] | None:
        """Return the nodes that would take a pod if they had room; None for all."""
        profile, snapshot = (
            self._core.profiles.get(info.pod.spec.scheduler_name),
            self._core.snapshot,
        )
        if profile is None:
            return None
        try:
            with in_question(profile, info.pod):
                inquiry = inquire(profile, snapshot, info)
        except CycleError:
            return None
        if inquiry.pre_filter.status.rejected:
            return None
        closed_n = inquiry.rejects_about(_LASTING[0])
        for subject in _LASTING[1:]:
            closed_n |= inquiry.rejects_about(subject)
        if not closed_n.any():
            return None
        return frozenset(row for row, closed in enumerate(closed_n.tolist()) if not closed)

    # --- running pods and room --------------------------------------------------------------------

    def _running(self) -> tuple[list[RunningPod], int]:
        snapshot, running, unknown = self._core.snapshot, list[RunningPod](), 0
        for row in range(snapshot.num_nodes):
            for info in snapshot.pods(row):
                pod = info.pod
                if pod.spec.restart_policy not in ENDING_POLICIES:
                    continue
                law = self._law(info)
                unknown += law is None
                elapsed = elapsed_seconds(pod, now_ns=self._now_ns)
                running.append(RunningPod(row, self._amounts_of(info), law, elapsed, pod.full_name))
        return running, unknown

    def _free(self) -> list[Amounts]:
        snapshot = self._core.snapshot
        columns = [
            (snapshot.allocatable(name) - snapshot.requested(name)).tolist()
            for name in self._resources
        ]
        columns.append((snapshot.allowed_pods - snapshot.pod_count).tolist())
        return list(zip(*columns, strict=True))

    def _amounts_of(self, info: PodInfo) -> Amounts:
        amounts = _amounts(info)
        return (*(amounts.get(name, 0) for name in self._resources), 1)

    def _law(self, info: PodInfo) -> RunTimeLaw | None:
        pod, job = info.pod, None
        if pod.spec.restart_policy not in ENDING_POLICIES:
            return None
        owner = pod.metadata.controller
        if owner is not None and owner.kind == "Job":
            job = self._core.snapshot.listers.jobs.get(owner.name, pod.namespace)
        declared = declared_seconds(pod)
        deadline = deadline_seconds(pod, job, now_ns=self._now_ns)
        classes = classes_of(pod, _amounts(info))
        key = (classes[0], declared, deadline)
        if key not in self._laws:
            self._laws[key] = self._book.law(classes, declared=declared, deadline=deadline)
        return self._laws[key]

    def _arrivals(self, arrivals: Sequence[Pod], infos: Mapping[str, PodInfo]) -> list[WaitingUnit]:
        units = (self._unit([infos[pod.uid]]) for pod in arrivals)
        return [msgspec.structs.replace(unit, name="") for unit in units]


def _amounts(info: PodInfo) -> Mapping[str, int]:
    return info.part(RESOURCES).value.filter


def _single_ends(model: QueueModel, most: int = 3) -> tuple[str, ...]:
    """Return running pods whose end alone would let the target start, as far as room goes."""
    unit = model.queue[model.target]
    if len(unit.shapes) != 1:
        return ()
    shape, names = model.shapes[unit.shapes[0]], list[str]()
    for pod in model.running:
        if shape.nodes is not None and pod.node not in shape.nodes:
            continue
        free = zip(shape.requests, model.free[pod.node], pod.requests, strict=True)
        if all(wanted <= max(0, left) + amount for wanted, left, amount in free):
            names.append(pod.name)
            if len(names) == most:
                break
    return tuple(names)
