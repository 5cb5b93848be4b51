"""Compares the course of a world as it is with its course after a change.

First the world settles as it is: pods that would start anyway start. Then the change happens, in
the same world, as it would in the cluster, and the world settles again. The difference is told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import msgspec

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.config.own import LoadedConfiguration
from moorage.framework.registry import Registry
from moorage.what_if.admission import Admission
from moorage.what_if.changes import Apply, Change, Scene, apply_change
from moorage.what_if.lists import is_finished
from moorage.what_if.rehearsal import Eviction, Rehearsal
from moorage.what_if.workloads import Workloads
from moorage.what_if.world import World

BETWEEN_SECONDS = 0.05
"""Time between two objects of one file: a guess, about as long as `kubectl apply` takes for one."""
_FOREIGN = "no profile of this scheduler serves schedulerName"


class Reconfigure(msgspec.Struct, frozen=True):
    """Start the scheduler again, with another configuration or with further plugins."""

    config: LoadedConfiguration
    registry: Registry


Step: TypeAlias = Change | Reconfigure


class Start(msgspec.Struct, frozen=True):
    """A pod that gets a node; `is_new` if the change made the pod."""

    pod: str
    node: str
    is_new: bool = False


class Move(msgspec.Struct, frozen=True, rename="camel"):
    """A pod that leaves its node, and the pod that its owner makes instead.

    Parameters
    ----------
    pod, from_node
        The pod, and the node it leaves.
    successor, to_node
        The new pod and its node.
    evicted_by
        The preemptor, "" where the change itself made the pod leave.
    """

    pod: str
    from_node: str
    successor: str
    to_node: str
    evicted_by: str = ""


class Waiting(msgspec.Struct, frozen=True, rename="camel"):
    """A pod without a node.

    Parameters
    ----------
    pod
        The pod.
    reason
        Why it has no node.
    was
        ``new``: the change made it. ``pending``: it had no node before. Otherwise the pod that it
        replaces, and its node: ``default/web-1 on node-3``.
    evicted_by
        The preemptor of the pod that it replaces, "" for none.
    """

    pod: str
    reason: str
    was: str
    evicted_by: str = ""


class Loss(msgspec.Struct, frozen=True, rename="camel"):
    """A pod that is gone, and nothing makes another."""

    pod: str
    node: str
    evicted_by: str = ""


class Cluster(msgspec.Struct, frozen=True):
    """Nodes and unfinished pods at one moment."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]


class Course(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The consequences of a change.

    Parameters
    ----------
    anyway
        Pods that start without the change, too.
    starts, moves, lost
        Pods that start; pods that move; pods that are gone and nothing makes another.
    newly_pending
        Pods without a node that had one, or that the change made.
    still_pending
        Pods without a node that had none before.
    ended
        Pods that the change deletes.
    is_quiet
        Whether everything came to rest; if not, pods are tried again and again.
    before, after
        The cluster before and after the change.
    """

    anyway: tuple[Start, ...]
    starts: tuple[Start, ...]
    moves: tuple[Move, ...]
    lost: tuple[Loss, ...]
    newly_pending: tuple[Waiting, ...]
    still_pending: tuple[Waiting, ...]
    ended: tuple[str, ...]
    is_quiet: bool
    before: Cluster
    after: Cluster

    @property
    def worse(self) -> tuple[str, ...]:
        """Return a sentence for each deterioration; empty without one."""
        leaving: list[Move | Waiting | Loss] = [*self.moves, *self.newly_pending, *self.lost]
        evicted = sum(bool(each.evicted_by) for each in leaving)
        found = []
        if self.lost:
            found.append(f"{_pods(len(self.lost))} lost: no owner makes another")
        if self.newly_pending:
            found.append(f"{_pods(len(self.newly_pending))} without a node")
        if evicted:
            found.append(f"{_pods(evicted)} evicted for pods of higher priority")
        return tuple(found)


def try_steps(world: World, steps: Sequence[Step]) -> Course:
    """Let a world settle as it is, make changes, let it settle again, and compare.

    Raises
    ------
    UsageError
        A change cannot be made: its object is not there, or would be refused.
    ConfigError
        A configuration cannot be used.
    """
    scene = scene_of(Rehearsal(world))
    rehearsal = scene.rehearsal
    rehearsal.settle()
    quiet = rehearsal.is_quiet
    if not rehearsal.bound and not rehearsal.evictions:
        rehearsal.rewind_draws()
    before = _State(rehearsal)
    anyway = tuple(
        Start(before.pods[uid].full_name, node_name)
        for uid, node_name in rehearsal.bound.items()
        if uid in before.pods
    )
    rehearsal = play(scene, steps)
    after = _State(rehearsal)
    found = _Difference(before, after, rehearsal.evictions)
    return Course(
        anyway=anyway,
        starts=tuple(found.starts),
        moves=tuple(found.moves),
        lost=tuple(found.lost),
        newly_pending=tuple(found.newly),
        still_pending=tuple(found.still),
        ended=tuple(found.ended),
        is_quiet=quiet and rehearsal.is_quiet,
        before=before.cluster,
        after=after.cluster,
    )


def play(scene: Scene, steps: Sequence[Step]) -> Rehearsal:
    """Make changes one after another, and let the world settle after each.

    Returns
    -------
    Rehearsal
        The rehearsal, or the one that continues it under another configuration.
    """
    for number, step in enumerate(steps):
        rehearsal = scene.rehearsal
        if isinstance(step, Reconfigure):
            world = msgspec.structs.replace(
                rehearsal.world_now(), config=step.config, registry=step.registry
            )
            scene = scene_of(Rehearsal(world, earlier=rehearsal))
            rehearsal = scene.rehearsal
        else:
            apply_change(step, scene)
        following = steps[number + 1] if number + 1 < len(steps) else None
        together = isinstance(step, Apply) and isinstance(following, Apply)
        if together:
            rehearsal.settle(within_seconds=BETWEEN_SECONDS)
        else:
            rehearsal.settle()
    return scene.rehearsal


def scene_of(rehearsal: Rehearsal) -> Scene:
    """Return a rehearsal with the other parts that changes need."""
    admission = Admission(
        rehearsal.objects,
        clock=rehearsal.filled.clock,
        rng=rehearsal.names.stream("what-if/admission"),
    )
    return Scene(rehearsal, admission, Workloads(rehearsal, admission))


class _State:
    """The unfinished pods of a rehearsal at one moment, by uid, and why they have no node."""

    def __init__(self, rehearsal: Rehearsal) -> None:
        objects = rehearsal.objects
        self.pods = {pod.uid: pod for pod in objects.pods.values() if not is_finished(pod)}
        self.nodes = tuple(objects.nodes.values())
        self._reasons = rehearsal.reasons()
        self._profiles = rehearsal.filled.core.profiles

    @property
    def cluster(self) -> Cluster:
        return Cluster(self.nodes, tuple(self.pods.values()))

    def reason(self, pod: Pod) -> str:
        name = pod.spec.scheduler_name
        if name not in self._profiles:
            return f"{_FOREIGN} {name}"
        return self._reasons.get(pod.uid, "it was not tried yet")


class _Difference:
    """Sorts the pods of two states by what happened to them."""

    def __init__(self, before: _State, after: _State, evictions: dict[str, Eviction]) -> None:
        self._before = before
        self._after = after
        self._evictions = evictions
        self.starts: list[Start] = []
        self.moves: list[Move] = []
        self.lost: list[Loss] = []
        self.newly: list[Waiting] = []
        self.still: list[Waiting] = []
        self.ended: list[str] = []
        followed = {self._last(uid) for uid in before.pods if uid in evictions}
        for pod in before.pods.values():
            self._known(pod, after.pods.get(pod.uid))
        for pod in after.pods.values():
            if pod.uid not in before.pods and pod.uid not in followed:
                self._new(pod)

    def _known(self, old: Pod, now: Pod | None) -> None:
        """Sort a pod that was there before."""
        if now is None:
            if old.uid in self._evictions:
                self._left(old)
            else:
                self.ended.append(old.full_name)
        elif old.spec.node_name:
            return
        elif now.spec.node_name:
            self.starts.append(Start(now.full_name, now.spec.node_name))
        else:
            self.still.append(Waiting(now.full_name, self._after.reason(now), "pending"))

    def _left(self, old: Pod) -> None:
        """Sort a pod that had to leave its node, by what became of its successors."""
        first, new = self._evictions[old.uid], self._after.pods.get(self._last(old.uid))
        by = "" if first.by is None else first.by.full_name
        node_name = first.pod.spec.node_name
        if new is None:
            self.lost.append(Loss(old.full_name, node_name, by))
        elif new.spec.node_name:
            to_node = new.spec.node_name
            self.moves.append(Move(old.full_name, node_name, new.full_name, to_node, by))
        else:
            was = f"{old.full_name} on {node_name}"
            self.newly.append(Waiting(new.full_name, self._after.reason(new), was, by))

    def _new(self, pod: Pod) -> None:
        if pod.spec.node_name:
            self.starts.append(Start(pod.full_name, pod.spec.node_name, is_new=True))
        else:
            self.newly.append(Waiting(pod.full_name, self._after.reason(pod), "new"))

    def _last(self, uid: str) -> str:
        """Return the uid of the last pod in a row of successors."""
        while uid in self._evictions and self._evictions[uid].successor:
            uid = self._evictions[uid].successor
        return uid


def _pods(count: int) -> str:
    return f"{count} pod" if count == 1 else f"{count} pods"
