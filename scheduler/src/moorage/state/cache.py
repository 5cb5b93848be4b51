"""The cache: the node that each pod runs on, or will run on, as the scheduler believes.

Fed by ``service/intake/ingest`` from the watch (add, update, remove) and by the scheduling cycle
(assume, forget); it feeds the snapshot's table, row by row. A pod is held in one of two ways:

            assume                add (watch)
    absent --------> assumed ---------------------> added --> absent
      ^                 |                             ^  remove
      +---- forget -----+        absent -- add -------+

*Assumed*: a decision was made and counts, the API server does not know yet. *Added*: the watch
showed it. Between the two the pod counts exactly once. An assumed pod never expires: it stays
until it is added, forgotten or removed.

Mirrors kubernetes v1.36 ``pkg/scheduler/backend/cache/cache.go``.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from enum import Enum
from types import MappingProxyType
from typing import TypeAlias

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base.clock import Clock
from moorage.base.errors import CacheCorruptedError, CacheError
from moorage.snapshot.pod_groups import PodGroups
from moorage.snapshot.pod_info import info_of
from moorage.state.cache_records import CacheCounts, CacheDump
from moorage.state.contracts import NodeTableLike
from moorage.state.lifecycle import Lifecycle, PodState

_log = logging.getLogger(__name__)


class Hold(Enum):
    """The form in which the cache holds a pod."""

    # Members are singletons; Enum's own hash is a Python function, and every move of every pod
    # needs the hash.
    __hash__ = object.__hash__

    ABSENT = "absent"
    ASSUMED = "assumed"
    ADDED = "added"


class Move(Enum):
    """The stimuli about a pod that the cache accepts."""

    __hash__ = object.__hash__  # as above

    ASSUME = "assume"
    FORGET = "forget"
    ADD = "add"
    UPDATE = "update"
    REMOVE = "remove"


# Under names of their own: finding a member in its class takes ten times as long.
_ABSENT, _ASSUMED, _ADDED = Hold.ABSENT, Hold.ASSUMED, Hold.ADDED
_ASSUME, _ADD = Move.ASSUME, Move.ADD
_IS_ASSUMED, _IS_BOUND = PodState.ASSUMED, PodState.BOUND


class Cache:
    """Pods and nodes, as the scheduler believes them to be.

    Parameters
    ----------
    table
        The snapshot's table; told of every change.
    clock
        Source of the histories' times.
    lifecycle
        The lifecycle shared with queue and service; made here when not given.
    groups
        Pod groups, told of every member that gets or loses a node; without it no pod has a group.
    """

    def __init__(
        self,
        table: NodeTableLike,
        clock: Clock,
        *,
        lifecycle: Lifecycle | None = None,
        groups: PodGroups | None = None,
    ) -> None:
        self._table = table
        self.groups = PodGroups() if groups is None else groups
        self.lifecycle = lifecycle if lifecycle is not None else Lifecycle(clock)
        self._nodes: dict[str, Node] = {}
        # uid -> the pod with its node, assumed or added.
        self._pods: dict[str, Pod] = {}
        # Uids of assumed pods, in order; a subset of the above. Values are unused.
        self._assumed: dict[str, None] = {}

    # --- pods ------------------------------------------------------------------------------------

    def assume_pod(self, pod: Pod, node_name: str) -> None:
        """Count a pod on the node chosen for it, before the API server knows.

        Raises
        ------
        CacheError
            The pod is held already, or has no uid.
        """
        self._report_move(_ASSUME, pod, node_name)

    def forget_pod(self, pod: Pod) -> None:
        """Take back an assumption; does nothing if the pod is not held at all.

        Parameters
        ----------
        pod
            The pod. If it names a node, it must be the one it was assumed on.

        Raises
        ------
        CacheError
            The pod is added, or was assumed on another node.
        """
        self._report_move(Move.FORGET, pod, pod.spec.node_name)

    def add_pod(self, pod: Pod) -> None:
        """Believe the watch that a pod is on its node; confirms an assumption.

        Raises
        ------
        CacheError
            The pod is added already.
        """
        self._report_move(_ADD, pod, pod.spec.node_name)

    def update_pod(self, old: Pod, new: Pod) -> None:
        """Take over a new version of an added pod.

        Raises
        ------
        CacheError
            The pod is not added.
        CacheCorruptedError
            The new version is on another node: a pod never moves.
        """
        assert old.uid == new.uid, f"pod {old.full_name} changed its uid; remove it and add the new"
        self._report_move(Move.UPDATE, new, new.spec.node_name)

    def remove_pod(self, pod: Pod) -> None:
        """Stop counting a pod, assumed or added.

        Parameters
        ----------
        pod
            The pod. The node may be empty: the pod was deleted before it was seen bound.

        Raises
        ------
        CacheError
            The pod is not held.
        CacheCorruptedError
            The pod is held on another node.
        """
        self._report_move(Move.REMOVE, pod, pod.spec.node_name)

    def is_assumed(self, uid: str) -> bool:
        """Whether a pod is assumed and not confirmed."""
        return uid in self._assumed

    def assumed(self) -> tuple[str, ...]:
        """Return the uids of the assumed pods, the longest assumed first."""
        return tuple(self._assumed)

    def get_pod(self, uid: str) -> Pod:
        """Return a pod as held; an assumed pod carries its node.

        Raises
        ------
        CacheError
            The pod is not held.
        """
        held = self._pods.get(uid)
        if held is None:
            raise CacheError(f"pod {uid} does not exist in scheduler cache")
        return held

    # --- nodes -----------------------------------------------------------------------------------

    def add_node(self, node: Node) -> None:
        """Believe in a node; pods that were waiting for it count from now on.

        A known node is updated: a relist shows known nodes as new.
        """
        if node.name in self._nodes:
            self.update_node(None, node)
            return
        self._nodes[node.name] = node
        self._table.add_node(node)

    def update_node(self, old: Node | None, new: Node) -> None:
        """Take over a new version of a node; adds an unknown node.

        Parameters
        ----------
        old
            The version before, not needed; kept so that callers hand over both alike.
        new
            The version now.
        """
        assert old is None or old.name == new.name, "a node was updated to another name"
        if new.name not in self._nodes:
            self.add_node(new)
            return
        self._nodes[new.name] = new
        self._table.update_node(new)

    def remove_node(self, node: Node) -> None:
        """Stop believing in a node; its pods are kept until they are removed themselves.

        Raises
        ------
        CacheError
            The node is not there.
        """
        if self._nodes.pop(node.name, None) is None:
            raise CacheError(f"node {node.name} is not found")
        self._table.remove_node(node.name)

    # --- looking ---------------------------------------------------------------------------------

    def counts(self) -> CacheCounts:
        """Return the number of pods and nodes that are held."""
        return CacheCounts(
            nodes=len(self._nodes) + len(self._table.hidden_nodes),
            pods=len(self._pods),
            assumed_pods=len(self._assumed),
        )

    def dump(self) -> CacheDump:
        """Return all pods and nodes that are held; the cost grows with their number."""
        return CacheDump(
            nodes=dict(self._nodes),
            node_of_pod={uid: pod.spec.node_name for uid, pod in self._pods.items()},
            pods=dict(self._pods),
            assumed=tuple(self._assumed),
        )

    def validate(self) -> None:
        """Check every invariant of the cache; for tests.

        Raises
        ------
        AssertionError
            Some invariant does not hold.
        """
        stray = [uid for uid in self._assumed if uid not in self._pods]
        assert not stray, f"assumed but not held: {stray}"
        for uid, pod in self._pods.items():
            assert pod.spec.node_name, f"pod {uid} is held without a node"
            state = self.lifecycle.state(uid)
            allowed = _ASSUMED_STATES if uid in self._assumed else _ADDED_STATES
            assert state in allowed, f"pod {uid} is held, its lifecycle says {state}"
        hidden = {pod.spec.node_name for pod in self._pods.values()} - self._nodes.keys()
        assert {*self._table.hidden_nodes} == hidden, "the table hides pods of other nodes"
        for name in self._nodes:
            assert self._table.has_node(name), f"node {name} is missing in the table"
        for state in _ASSUMED_STATES | _ADDED_STATES:
            lost = [uid for uid in self.lifecycle.in_state(state) if uid not in self._pods]
            assert not lost, f"{state.value}, but not held: {lost}"

    # --- the states of a pod ----------------------------------------------------------------------

    def _report_move(self, move: Move, pod: Pod, node_name: str) -> None:
        uid = pod.metadata.uid
        if not uid:
            raise CacheError(f"cannot get cache key for pod with empty UID: {pod.full_name}")
        if uid in self._assumed:
            hold = _ASSUMED
        else:
            hold = _ADDED if uid in self._pods else _ABSENT
        TRANSITIONS[hold, move](self, pod, node_name)

    def _assume(self, pod: Pod, node_name: str) -> None:
        info, uid = info_of(pod).placed(node_name), pod.metadata.uid
        self.lifecycle.move(pod, _IS_ASSUMED, cause=f"assumed on {node_name}")
        self._pods[uid] = info.pod
        self._assumed[uid] = None
        self._table.add_pod(info, node_name)
        self.groups.assume(uid)

    def _forget(self, pod: Pod, node_name: str) -> None:
        cached = self._pods[pod.uid]
        if node_name and node_name != cached.spec.node_name:
            raise CacheError(
                f"pod {pod.uid}({pod.full_name}) was assumed on {node_name} "
                f"but assigned to {cached.spec.node_name}"
            )
        cause = f"forgotten on {cached.spec.node_name}"
        self.lifecycle.move(cached, PodState.IN_FLIGHT, cause=cause)
        self._drop(pod.uid)
        self.groups.forget_pod(pod.uid)

    def _add(self, pod: Pod, node_name: str) -> None:
        self.lifecycle.move(pod, _IS_BOUND, cause=f"seen on {node_name}")
        self._pods[pod.metadata.uid] = pod
        self._table.add_pod(pod, node_name)
        self.groups.put_pod(pod)

    def _confirm(self, pod: Pod, node_name: str) -> None:
        uid = pod.metadata.uid
        assumed_on = self._pods[uid].spec.node_name
        if assumed_on != node_name:
            _log.warning(
                "pod %s was assumed on %s but is bound to %s; the API's word counts",
                pod.full_name,
                assumed_on,
                node_name,
            )
        self.lifecycle.move(pod, _IS_BOUND, cause=f"confirmed on {node_name}")
        del self._assumed[uid]
        self._exchange(pod, node_name)

    def _replace(self, pod: Pod, node_name: str) -> None:
        if self._pods[pod.uid].spec.node_name != node_name:
            raise self._moved(pod, node_name)
        self._exchange(pod, node_name)

    def _remove(self, pod: Pod, node_name: str) -> None:
        uid = pod.metadata.uid
        if node_name and self._pods[uid].spec.node_name != node_name:
            raise self._moved(pod, node_name)
        self.lifecycle.move(pod, PodState.GONE, cause="removed from the cache")
        self._drop(uid)
        self.groups.remove(uid)

    def _moved(self, pod: Pod, node_name: str) -> CacheCorruptedError:
        """Return the exception for a pod that is said to be on another node than it is held on."""
        held = self._pods[pod.uid]
        return CacheCorruptedError(
            f"scheduler cache is corrupted and can badly affect scheduling decisions: pod "
            f"{pod.full_name} is on {held.spec.node_name}, the API says {node_name}"
        )

    def _exchange(self, pod: Pod, node_name: str) -> None:
        """Take over a newer version; the table is left alone if it would not change."""
        self._pods[pod.metadata.uid] = pod
        self._table.update_pod(pod, node_name)
        self.groups.put_pod(pod)

    def _drop(self, uid: str) -> None:
        del self._pods[uid]
        self._assumed.pop(uid, None)
        self._table.remove_pod(uid)


_Step: TypeAlias = Callable[[Cache, Pod, str], None]


def _nothing(cache: Cache, pod: Pod, node_name: str) -> None:
    """Do nothing: the pod is in that state already."""


def _refuse(text: str) -> _Step:
    """Make a step that changes nothing and raises `CacheError`.

    Parameters
    ----------
    text
        The message; ``{pod}`` stands for uid and name of the pod.
    """

    def step(cache: Cache, pod: Pod, node_name: str) -> None:
        raise CacheError(text.format(pod=f"{pod.uid}({pod.full_name})"))

    return step


_H, _M = Hold, Move
# ruff: noqa: SLF001 - the table is the class's own, written where all its steps are in sight
TRANSITIONS: Mapping[tuple[Hold, Move], _Step] = MappingProxyType(
    {
        (_H.ABSENT, _M.ASSUME): Cache._assume,
        (_H.ABSENT, _M.FORGET): _nothing,
        (_H.ABSENT, _M.ADD): Cache._add,
        (_H.ABSENT, _M.UPDATE): _refuse(
            "pod {pod} is not added to scheduler cache, so cannot be updated"
        ),
        (_H.ABSENT, _M.REMOVE): _refuse(
            "pod {pod} is not found in scheduler cache, so cannot be removed from it"
        ),
        (_H.ASSUMED, _M.ASSUME): _refuse("pod {pod} is in the cache, so can't be assumed"),
        (_H.ASSUMED, _M.FORGET): Cache._forget,
        (_H.ASSUMED, _M.ADD): Cache._confirm,
        (_H.ASSUMED, _M.UPDATE): _refuse("assumed pod {pod} should not be updated"),
        (_H.ASSUMED, _M.REMOVE): Cache._remove,
        (_H.ADDED, _M.ASSUME): _refuse("pod {pod} is in the cache, so can't be assumed"),
        (_H.ADDED, _M.FORGET): _refuse("pod {pod} wasn't assumed so cannot be forgotten"),
        (_H.ADDED, _M.ADD): _refuse("pod {pod} was already in added state"),
        (_H.ADDED, _M.UPDATE): Cache._replace,
        (_H.ADDED, _M.REMOVE): Cache._remove,
    }
)
"""(How the pod is held, stimulus) -> the step that the cache takes."""

_ASSUMED_STATES = frozenset({PodState.ASSUMED, PodState.WAITING, PodState.BINDING})
_ADDED_STATES = frozenset({PodState.BOUND})
