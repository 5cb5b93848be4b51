"""Compares the course of a model as it is with its course after a change.

First the model settles as it is: pods that would start anyway start. Then the change happens, in
the same model, as it would in the cluster, and the model settles again. The difference is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeAlias

import msgspec

from moorage.api.pod import Pod
from moorage.config.own import LoadedConfiguration
from moorage.framework.registry import Registry
from moorage.virtual.agenda import orders_to_try
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.model import ClusterModel
from moorage.virtual.objects import Key, is_finished
from moorage.virtual.owner_kinds import is_of_job, unknown_owner
from moorage.what_if.change import Apply, Change
from moorage.what_if.changes import Scene, apply_change, owner_and_group
from moorage.what_if.claims.pod_claims import PodClaims
from moorage.what_if.claims.volumes import ClaimVolumes
from moorage.what_if.consequences import (
    ChangeComparison,
    End,
    FlagNeed,
    Loss,
    Move,
    Start,
    Waiting,
)
from moorage.what_if.fullness import Fullness, node_changes, zone_changes
from moorage.what_if.owners.workloads import Workloads
from moorage.what_if.rules.admission import Admission
from moorage.what_if.rules.bounds import Bounds, Refused
from moorage.what_if.rules.budgets import Budgets

BETWEEN_SECONDS = 0.05
"""Time between two objects of one file: a guess, about as long as `kubectl apply` takes for one."""
_FOREIGN = "no profile of this scheduler serves schedulerName"


class Reconfigure(msgspec.Struct, frozen=True):
    """Start the scheduler again, with another configuration or with further plugins."""

    config: LoadedConfiguration
    registry: Registry


Step: TypeAlias = Change | Reconfigure


def try_steps(
    start: ClusterInputs | ClusterModel,
    steps: Sequence[Step],
    *,
    check: Callable[[], object] | None = None,
) -> ChangeComparison:
    """Let a model settle as it is, make changes, let it settle again, and compare.

    Parameters
    ----------
    start
        The model, or a model in it that has just begun.
    steps
        The changes, in order.
    check
        Raises where a limit of the answer is reached.

    Raises
    ------
    UsageError
        A change cannot be made: its object is not there, or would be refused.
    ConfigError
        A configuration cannot be used.
    """

    def from_start() -> ClusterModel:
        model = start if isinstance(start, ClusterModel) else ClusterModel(start)
        model.check = check or model.check
        return model

    first = tried(from_start(), steps)
    if isinstance(start, ClusterModel):
        return first.course
    return first.compared(lambda order: tried(from_start(), steps, order=order))


class Tried(msgspec.Struct, frozen=True):
    """A course, and what became of the pods of each owner.

    Parameters
    ----------
    course
        The course.
    fates
        Numbers of pods by owner (or pod, without one) and fate.
    others
        The numbers of the other orders to try: where pods of several owners leave at one moment,
        several victims of preemption stop, or several owners wait for the same room in a quota.
    """

    course: ChangeComparison
    fates: dict[str, int]
    others: tuple[int, ...]

    def compared(self, other: Callable[[int], Tried]) -> ChangeComparison:
        """Return the course; it says whether another order comes out differently.

        Parameters
        ----------
        other
            Does the same in the order of a number.
        """
        matters = any(other(order).fates != self.fates for order in self.others)
        return msgspec.structs.replace(self.course, order_matters=matters)


def tried(model: ClusterModel, steps: Sequence[Step], *, order: int = 0) -> Tried:
    """Do the same, in one order of what happens at one moment.

    Parameters
    ----------
    model
        A model that has just begun.
    order
        The number of the order, see `Order`.
    """
    model.take_order(order)
    scene = scene_of(model)
    scene.workloads.make_limited_pods()
    model.settle()
    refused_before = frozenset(scene.bounds.refused)
    quiet = model.is_quiet
    if not model.bound and not model.evictions:
        model.rewind_draws()
    anyway = tuple(
        _start(pod, model)
        for uid, (key, _old) in model.touched.items()
        if uid in model.bound and (pod := model.version(key, uid)) is not None
    )
    model.mark()
    before = Fullness(model.half.core.snapshot)
    scene = play(scene, steps)
    model = scene.model
    after = Fullness(model.half.core.snapshot)
    difference_found = _Difference(scene, refused_before)
    course = ChangeComparison(
        anyway=anyway,
        starts=tuple(difference_found.starts),
        moves=tuple(difference_found.moves),
        lost=tuple(difference_found.lost),
        newly_pending=tuple(difference_found.newly),
        still_pending=tuple(difference_found.still),
        ended=tuple(difference_found.ended),
        is_quiet=quiet and model.is_quiet,
        nodes=node_changes(before, after),
        zones=zone_changes(before, after),
        not_evicted=tuple(scene.not_evicted.values()),
        drain_flags=tuple(
            FlagNeed(flag, tuple(sorted(pods))) for flag, pods in sorted(scene.flags.items())
        ),
        volumes_anywhere=tuple("/".join(key) for key in sorted(scene.volumes.without_topology)),
        job_pods=_job_pods(model) if difference_found.newly or difference_found.still else (),
    )
    victims = sum(each.by is not None for each in model.evictions.values())
    together = len(difference_found.leavers) > 1 or victims > 1 or scene.bounds.is_contended
    others = orders_to_try(model.attempts, len(model.objects.pods)) if together else ()
    return Tried(course, dict(difference_found.fates), tuple(others))


def play(scene: Scene, steps: Sequence[Step]) -> Scene:
    """Make changes one after another, and let the model settle after each.

    Returns
    -------
    Scene
        The scene, or the one that continues it under another configuration.
    """
    for number, step in enumerate(steps):
        model = scene.model
        if isinstance(step, Reconfigure):
            inputs = msgspec.structs.replace(
                model.world_now(), config=step.config, registry=step.registry
            )
            before, scene = scene, scene_of(ClusterModel(inputs, earlier=model))
            scene.not_evicted.update(before.not_evicted)
            scene.flags.update(before.flags)
            scene.bounds.continue_from(before.bounds)
            scene.workloads.jobs.continue_from(before.workloads.jobs)
            model = scene.model
        else:
            apply_change(step, scene)
        following = steps[number + 1] if number + 1 < len(steps) else None
        together = isinstance(step, Apply) and isinstance(following, Apply)
        if together:
            model.settle(within_seconds=BETWEEN_SECONDS)
        else:
            model.settle()
    return scene


def scene_of(model: ClusterModel) -> Scene:
    """Return a model with the other parts that changes need."""
    admission = Admission(
        model.objects,
        clock=model.half.clock,
        rng=model.names.stream("what-if/admission"),
        with_policies=True,
    )
    bounds = Bounds(model, admission)
    claims = PodClaims(model, bounds)
    volumes = ClaimVolumes(model, bounds)
    workloads = Workloads(model, admission, bounds)
    return Scene(model, admission, workloads, Budgets(model), bounds, claims, volumes)


class _Difference:
    """Sorts the pods that were touched since the mark, and the pods that wait, by what happened."""

    def __init__(self, scene: Scene, refused_before: frozenset[Key]) -> None:
        model, refused = scene.model, list(scene.bounds.refused.values())
        self._model = model
        self._jobs = scene.workloads.jobs
        self._stateful_sets = scene.workloads.stateful_sets
        # The pods that owners cannot make: those that would follow another pod, and the others.
        self._refused_after: dict[str, Refused] = {}
        for each in refused:
            predecessor = model.predecessor_of(each.pod)
            if predecessor:
                self._refused_after[predecessor] = each
        self._reasons = scene.reasons()
        self.starts: list[Start] = []
        self.moves: list[Move] = []
        self.lost: list[Loss] = []
        self.newly: list[Waiting] = []
        self.still: list[Waiting] = []
        self.ended: list[End] = []
        self.fates: Counter[str] = Counter()
        # The owners of the pods that the change itself made leave.
        self.leavers: set[str] = set()
        touched, evictions = model.touched, model.evictions
        known = {
            uid: old
            for uid, (_key, old) in touched.items()
            if old is not None and not is_finished(old)
        }
        followed = {self._last(uid) for uid in known if uid in evictions}
        for uid, old in known.items():
            self._sort_earlier(old, self._now(uid))
        for uid, (_key, before) in touched.items():
            pod = self._now(uid) if before is None else None
            if pod is not None and uid not in followed:
                self._new(pod)
        for each in refused:
            if model.predecessor_of(each.pod):
                continue
            self.fates[f"{_owner(each.pod)} waits"] += 1
            if each.pod.key in refused_before:
                self.still.append(self._not_made(each, "pending"))
            else:
                self.newly.append(self._not_made(each, "new"))
        for pod in model.objects.pending_pods:
            if pod.uid not in touched:
                self.still.append(self._waiting(pod, "pending"))

    def _now(self, uid: str) -> Pod | None:
        """Return a touched pod as it is now; None if it is gone or has finished."""
        if uid not in self._model.touched:
            return None
        pod = self._model.version(self._model.touched[uid][0], uid)
        return None if pod is None or is_finished(pod) else pod

    def _sort_earlier(self, old: Pod, now: Pod | None) -> None:
        """Sort a pod that was there before."""
        if now is None:
            if old.uid in self._model.evictions:
                self._left(old)
            else:
                self.ended.append(self._end(old))
        elif old.spec.node_name:
            return
        elif now.spec.node_name:
            self.fates[f"{_owner(old)} starts"] += 1
            self.starts.append(_start(now, self._model))
        else:
            self.still.append(self._waiting(now, "pending"))

    def _left(self, old: Pod) -> None:
        """Sort a pod that had to leave its node, by what became of its successors."""
        first = self._model.evictions[old.uid]
        new = self._now(self._last(old.uid))
        by = "" if first.by is None else first.by.full_name
        node_name = first.pod.spec.node_name
        refused = self._refused_after.get(self._last(old.uid))
        if refused is not None:
            self.fates[f"{_owner(old)} waits"] += 1
            self.newly.append(self._not_made(refused, f"{old.full_name} on {node_name}", by))
            return
        missing = self._stateful_sets.reason_missing(old) if new is None else ""
        if missing:
            self.fates[f"{_owner(old)} waits"] += 1
            was, names = f"{old.full_name} on {node_name}", owner_and_group(old, self._model)
            self.newly.append(Waiting(old.full_name, missing, was, by, *names))
            return
        fate = "is lost" if new is None else "moves" if new.spec.node_name else "waits"
        self.fates[f"{_owner(old)} {fate}"] += 1
        if not by:
            self.leavers.add(_owner(old))
        failure = self._jobs.failures.get(_owner(old), "")
        unknown = unknown_owner(first.pod) or self._jobs.foreign_manager(old)
        if new is None and not (first.lost or failure or unknown):
            self.ended.append(self._end(old))  # its owner wants no other pod
        elif new is None:
            names = owner_and_group(old, self._model)
            self.lost.append(Loss(old.full_name, node_name, by, unknown, failure, *names))
        elif new.spec.node_name:
            to_node, names = new.spec.node_name, owner_and_group(new, self._model)
            self.moves.append(Move(old.full_name, node_name, new.full_name, to_node, by, *names))
        else:
            self.newly.append(self._waiting(new, f"{old.full_name} on {node_name}", by))

    def _new(self, pod: Pod) -> None:
        self.fates[f"{_owner(pod)} {'starts' if pod.spec.node_name else 'waits'}"] += 1
        if pod.spec.node_name:
            self.starts.append(_start(pod, self._model, is_new=True))
        else:
            self.newly.append(self._waiting(pod, "new"))

    def _waiting(self, pod: Pod, was: str, evicted_by: str = "") -> Waiting:
        name = pod.spec.scheduler_name
        if name not in self._model.half.core.profiles:
            reason = f"{_FOREIGN} {name}"
        else:
            reason = self._reasons.get(pod.uid, "it was not tried yet")
        names = owner_and_group(pod, self._model)
        return Waiting(pod.full_name, reason, was, evicted_by, *names)

    def _not_made(self, refused: Refused, was: str, evicted_by: str = "") -> Waiting:
        """Return a pod that its owner cannot make."""
        reason = f"its namespace refuses the pod, so it is not made: {refused.reason}"
        names = owner_and_group(refused.pod, self._model)
        return Waiting(refused.pod.full_name, reason, was, evicted_by, *names)

    def _end(self, pod: Pod) -> End:
        return End(pod.full_name, *owner_and_group(pod, self._model))

    def _last(self, uid: str) -> str:
        """Return the uid of the last pod in a row of successors."""
        evictions = self._model.evictions
        while uid in evictions and evictions[uid].successor:
            uid = evictions[uid].successor
        return uid


def _job_pods(model: ClusterModel) -> tuple[str, ...]:
    """Return the names of the pods of Jobs that run."""
    pods = model.objects.scheduled_pods
    return tuple(sorted(pod.full_name for pod in pods if is_of_job(pod)))


def _owner(pod: Pod) -> str:
    """Return the uid of a pod's controller, or the name of a pod without one."""
    owner = pod.metadata.controller
    return pod.full_name if owner is None else owner.uid


def _start(pod: Pod, model: ClusterModel, *, is_new: bool = False) -> Start:
    owner, group = owner_and_group(pod, model)
    return Start(pod.full_name, pod.spec.node_name, is_new, owner, group)
