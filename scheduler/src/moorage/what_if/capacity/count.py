"""Counts how many more pods would fit, what binds first, and which nodes would place what waits.

Pods are placed one after another by the scheduler's own cycle, until one finds no node. Nothing is
evicted for them: capacity is room that is free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from moorage.api.codec import to_dict
from moorage.api.meta import ObjectMeta
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.reasons.codes import code_of_message
from moorage.base.errors import LimitReachedError, UsageError
from moorage.base.ids import new_uid
from moorage.engine.decision import Decision
from moorage.service.questions.folding.folds import Fold, fold
from moorage.service.questions.folding.group_reason import with_group_reasons
from moorage.snapshot.pod_info import PodInfo
from moorage.virtual.live_objects import fresh
from moorage.virtual.model import ClusterModel
from moorage.what_if.capacity.group_filling import GroupFilling
from moorage.what_if.capacity.room import Need, Room
from moorage.what_if.capacity.shapes import HOSTNAME
from moorage.what_if.changes import Scene, owner_and_group
from moorage.what_if.course import scene_of

# More nodes than a user adds at once, and few enough to try.
_NODES_MOST: Final = 1_000
# Nodes without effect after which no further one is tried, even for a larger group. A guess.
_NODES_AT_ONCE_MOST: Final = 64


class Kind(msgspec.Struct, frozen=True):
    """One kind of pod in a mix: a pod, and how many of it there are in one mix.

    Parameters
    ----------
    owner
        The object that makes the pods, one in each mix; None for pods alone.
    shelves
        The resources of objects that come with the owner, with their groups: quotas count them.
    """

    pod: Pod
    count: int = 1
    owner: dict[str, Any] | None = None
    shelves: tuple[str, ...] = ()


def room_in(scene: Scene, mix: Sequence[Kind], *, most: int) -> Room:
    """Place pods until one finds no node, in a scene that has just begun.

    Parameters
    ----------
    mix
        The pods of one mix; at least one.
    most
        Largest number of pods to place.

    Raises
    ------
    UsageError
        No profile serves the pods' schedulerName, or a pod would have to wait for others.
    """
    scene.model.settle()
    filling = _Filling(scene)
    mixes = 0
    while True:
        for kind in mix:
            if not filling.takes_owner(kind):
                return filling.room(mixes)
            left = filling.wanted(kind)
            while left:
                if filling.placed >= most:
                    return filling.room(mixes, reached_most=True)
                try:
                    scene.model.check()
                    done = filling.place(kind, left)
                except LimitReachedError as limit:
                    return filling.room(mixes, reached_most=True, limit=str(limit))
                if not done:
                    return filling.room(mixes)
                left -= done
        mixes += 1


class _Filling:
    """A model that is filled with pods."""

    def __init__(self, scene: Scene) -> None:
        model = scene.model
        self._scene = scene
        self._bounds = scene.bounds
        self._refused_because = ""
        self._model = model
        self._core = model.half.core
        self._groups = GroupFilling(model)
        self._uids = model.names.stream("what-if/capacity")
        self._by_node: dict[str, int] = {}
        self._last: Decision | None = None
        self._why_no_group = ""
        self.placed = 0

    def wanted(self, kind: Kind) -> int:
        """Return how many pods of a kind one mix has: of a group, at least its minimum."""
        if self._groups.group_of(kind.pod) is None:
            return kind.count
        return max(kind.count, self._groups.minimum_of(kind.pod))

    def takes_owner(self, kind: Kind) -> bool:
        """Whether its namespace takes the owner of a kind once more; it is counted then."""
        if kind.owner is None:
            return True
        whys = (self._bounds.fault(shelf, kind.owner) for shelf in kind.shelves)
        self._refused_because = next(filter(None, whys), "")
        if self._refused_because:
            return False
        for shelf in kind.shelves:
            self._bounds.count(shelf, kind.owner)
        return True

    def place(self, kind: Kind, count: int) -> int:
        """Place one more pod, or a whole group of so many; return how many were placed."""
        if kind.pod.spec.scheduler_name not in self._core.cycles:
            raise UsageError(
                f"no profile serves schedulerName {kind.pod.spec.scheduler_name}; "
                "--running-config names the file of the scheduler's configuration"
            )
        self._refused_because = self._bounds.pod_fault(kind.pod)
        if self._refused_because:
            return 0
        if self._groups.group_of(kind.pod) is not None:
            by_node, self._why_no_group = self._groups.place([kind.pod] * count)
        elif kind.pod.spec.resource_claims or any(v.ephemeral for v in kind.pod.spec.volumes):
            by_node, self._why_no_group = self._with_claims(kind.pod)
        else:
            self._last = self._one(kind.pod)
            node_name = self._last.node_name
            by_node = {node_name: 1} if node_name else {}
        for name, number in by_node.items():
            self._by_node[name] = self._by_node.get(name, 0) + number
        self.placed += sum(by_node.values())
        return sum(by_node.values())

    def _with_claims(self, like: Pod) -> tuple[dict[str, int], str]:
        """Add one more pod, let its claims be made, and see where it goes."""
        pod = fresh(like, name=f"{like.metadata.name or like.metadata.generate_name}-{self.placed}")
        spec = msgspec.structs.replace(pod.spec, preemption_policy="Never")
        added = self._model.add_pod(msgspec.structs.replace(pod, spec=spec))
        self._model.settle()
        now = self._model.current(added)
        if now is not None and now.spec.node_name:
            return {now.spec.node_name: 1}, ""
        refusal = self._scene.refused_claims.get(added.uid, "")
        if not refusal:
            self._last = self._core.cycles[added.spec.scheduler_name].decide(PodInfo(now or added))
        return {}, refusal

    def _one(self, like: Pod) -> Decision:
        """Decide about one more pod, and put it on its node."""
        name = f"{like.metadata.name or like.metadata.generate_name}-{self.placed}"
        pod = fresh(like, name=name)
        metadata = msgspec.structs.replace(pod.metadata, uid=new_uid(self._uids))
        pod = msgspec.structs.replace(pod, metadata=metadata)
        decision = self._core.cycles[pod.spec.scheduler_name].decide(PodInfo(pod))
        if decision.node_name:
            spec = msgspec.structs.replace(pod.spec, node_name=decision.node_name)
            self._model.half.pods.on_add(msgspec.structs.replace(pod, spec=spec))
            self._bounds.count("pods", to_dict(pod))
        return decision

    def room(self, mixes: int, *, reached_most: bool = False, limit: str = "") -> Room:
        """Return what was found, and why the last pod or group had no place."""
        message, counts = self._refused_because or self._why_no_group, dict[str, int]()
        diagnosis = None if self._last is None or message else self._last.diagnosis
        if diagnosis is not None:
            counts = dict(diagnosis.reason_counts)
            if diagnosis.pre_filter_message:
                counts = {diagnosis.pre_filter_message: diagnosis.num_nodes}
            # Nothing is evicted here, so what PostFilter says is not told.
            message = msgspec.structs.replace(diagnosis, post_filter_message="").message
        return Room(
            fit=mixes,
            pods=self.placed,
            reached_most=reached_most,
            message="" if reached_most else message,
            reasons=dict(sorted(counts.items(), key=lambda each: (-each[1], each[0]))),
            by_node=dict(sorted(self._by_node.items())),
            refused=bool(self._refused_because) and not reached_most,
            limit=limit,
        )


def need_of(model: ClusterModel, shape: tuple[str, Mapping[str, Any]]) -> Need | None:
    """Add nodes of a shape in a model that has just begun; None if no pod waits."""
    like, manifest = shape
    scene = scene_of(model)
    model.settle()
    first = left = _waiting(model)
    if not first:
        return None
    nodes, added, limit = 0, 0, ""
    at_once = _nodes_at_once(model, left)
    while left and added < _NODES_MOST and added - nodes < at_once:
        added += 1
        try:
            model.put_node(_node(manifest, f"added-{added}"))
            scene.workloads.nodes_changed()
            model.settle()
        except LimitReachedError as reached:
            limit = str(reached)
            break
        now = _waiting(model)
        if len(now) < len(left):
            nodes, left = added, now
    if left and added == _NODES_MOST:
        limit = f"no more than {_NODES_MOST} nodes are tried"
    amounts = {k: str(v) for k, v in (manifest["status"].get("allocatable") or {}).items()}
    return Need(
        like,
        amounts,
        nodes,
        len(first) - len(left),
        len(left),
        reason=model.reasons().get(left[0].uid, "") if left else "",
        limit=limit,
        waiting=_rows(left, model),
    )


def waiting_rows(model: ClusterModel) -> tuple[Fold, ...]:
    """Return the pods that wait, those of equal owner, group and reason as one row."""
    return _rows(_waiting(model), model)


def _rows(pods: Sequence[Pod], model: ClusterModel) -> tuple[Fold, ...]:
    reasons, rows = model.reasons(), list[Fold]()
    for pod in pods:
        owner, group = owner_and_group(pod, model)
        message = reasons.get(pod.uid, "")
        rows.append(
            Fold(
                namespace=pod.namespace,
                owner=owner,
                group=group,
                reason=code_of_message(message),
                names=(pod.metadata.name,),
                priority=pod.priority,
                message=message,
            )
        )
    return tuple(fold(with_group_reasons(rows)))


def _nodes_at_once(model: ClusterModel, waiting: Sequence[Pod]) -> int:
    """Return how many nodes may have to come before one more pod is placed.

    A group is placed as a whole, and each of its members may need a node of its own.
    """
    groups = model.half.core.snapshot.groups
    terms = [groups.terms_of(pod) for pod in waiting]
    minima = [each.minimum for each in terms if each is not None and each.gang]
    return min(max(minima, default=1), _NODES_AT_ONCE_MOST)


def _node(manifest: Mapping[str, Any], name: str) -> Node:
    labels = {**(manifest["metadata"].get("labels") or {}), HOSTNAME: name}
    node = msgspec.convert(
        {"spec": manifest.get("spec") or {}, "status": manifest["status"]}, Node, strict=False
    )
    return msgspec.structs.replace(node, metadata=ObjectMeta(name=name, labels=labels))


def _waiting(model: ClusterModel) -> list[Pod]:
    profiles = model.half.core.profiles
    return [
        pod
        for pod in model.objects.pending_pods
        if pod.spec.scheduler_name in profiles and not pod.spec.scheduling_gates
    ]
