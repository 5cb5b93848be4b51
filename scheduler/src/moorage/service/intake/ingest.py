"""Takes in the watch events: each becomes changes of cache, queue and listers.

The state changes on the other side as well, where attempts begin and end (`pump`,
`group_attempt`, `binding_cycle`, `failure`). No other part on the watch's side touches the state.

Rules: scheduling spec, events and informers section 3 (kubernetes v1.36
``pkg/scheduler/eventhandlers.go``). The cache is told before the queue, except that a node's
deletion is told to the queue first.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from typing import Final, Generic, TypeVar

from moorage.api.changes import (
    RESERVATION_DELETE,
    Action,
    ClusterEvent,
    Resource,
    node_changes,
    pod_changes,
)
from moorage.api.meta import ApiObject, Quantity
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.quantity import parse_quantity
from moorage.base.errors import CacheCorruptedError, CacheError, DecodeError
from moorage.service.binding.pod_writes import PodWrites
from moorage.service.binding.waiting import WaitingPods
from moorage.service.intake.pod_store import PodStore
from moorage.service.process.facts import Facts
from moorage.snapshot.listers import Lister
from moorage.snapshot.pod_groups import PodGroups
from moorage.snapshot.pod_info import PodInfo, info_of
from moorage.snapshot.shape import RESOURCES
from moorage.state.cache import Cache
from moorage.state.queue import SchedulingQueue

_log = logging.getLogger(__name__)

K = TypeVar("K", bound=ApiObject)

NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)
NODE_DELETE = ClusterEvent(Resource.NODE, Action.DELETE)
ASSIGNED_POD_ADD = ClusterEvent(Resource.ASSIGNED_POD, Action.ADD)
ASSIGNED_POD_DELETE = ClusterEvent(Resource.ASSIGNED_POD, Action.DELETE)
UNSCHEDULABLE_POD_ADD = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.ADD)
UNSCHEDULABLE_POD_UPDATE = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.UPDATE)
UNSCHEDULABLE_POD_DELETE = ClusterEvent(Resource.UNSCHEDULABLE_POD, Action.DELETE)


# The changes of a node that decide which pods it suits.
_SUITS: Final = Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT | Action.UPDATE_NODE_ALLOCATABLE


def _quantity(name: str, amount: Quantity) -> None:
    try:
        parse_quantity(amount)
    except ValueError as problem:
        raise ValueError(f"status.allocatable[{name}]: {problem}; fix the node") from None


def _tolerate(problem: CacheError) -> None:
    """Log a change that contradicts the cache and go on; the next watch event repairs the belief.

    A belief that no later event repairs (`CacheCorruptedError`) ends the scheduler instead.
    """
    if isinstance(problem, CacheCorruptedError):
        raise problem
    _log.error("cache: %s", problem)


class _Reporting:
    """Counts and logs unreadable objects; the other objects are taken in."""

    def __init__(self, kind: str, facts: Facts) -> None:
        self._kind = kind
        self._facts = facts
        self._events = facts.events
        self.synced = False

    def on_synced(self) -> None:
        """Note that the first list is in."""
        self.synced = True

    def _report(self, obj: ApiObject, problem: ValueError) -> None:
        """Report an object whose values make no sense; it is left out until it is fixed."""
        self._facts.note_undecodable()
        place = "/".join(part for part in (obj.namespace, obj.name) if part)
        _log.error("%s %s is left alone: %s", self._kind, place, problem)

    def on_undecodable(self, key: tuple[str, str], problem: DecodeError) -> None:
        """Report an object that cannot be read."""
        self._facts.note_undecodable()
        name = "/".join(part for part in key if part)
        _log.error("%s %s cannot be read and is left alone: %s", self._kind, name, problem)


class _Changing(_Reporting):
    """The common part of nodes and pods: one update may be several cluster events."""

    _queue: SchedulingQueue

    def _changed(
        self, events: Sequence[ClusterEvent], old: ApiObject, new: ApiObject, *, began_ns: int
    ) -> None:
        """Tell the queue of every change, and note how long that takes."""
        before_ns = self._events.now_ns() - began_ns
        for event in events:
            moves_ns = self._events.now_ns()
            self._queue.move_all(event, old, new)
            self._events.handled(event.label, since_ns=moves_ns - before_ns)


class NodeIngest(_Changing):
    """Nodes to cache and queue.

    Parameters
    ----------
    cache, queue
        The state.
    facts
        Totals.
    changed
        Called with a node's name when the node has come, is gone, or may suit pods no longer, and
        whether it may be a new domain; None for nothing.
    """

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        facts: Facts,
        *,
        changed: Callable[[str, bool], None] | None = None,
    ) -> None:
        super().__init__("Node", facts)
        self._cache = cache
        self._queue = queue
        self._on_change = changed
        # Nodes whose newest version makes no sense -> the version the cache holds, None without
        # one.
        self._left_alone: dict[str, Node | None] = {}

    def on_add(self, node: Node) -> None:
        """Take in a node that appeared."""
        if not self._readable(node):
            self._left_alone[node.name] = None
            return
        began_ns = self._events.now_ns()
        try:
            self._cache.add_node(node)
        except CacheError as problem:
            _tolerate(problem)
        self._queue.move_all(NODE_ADD, None, node)
        self._events.handled(NODE_ADD.label, since_ns=began_ns)
        if self._on_change is not None:
            self._on_change(node.name, True)

    def on_update(self, old: Node, new: Node) -> None:
        """Take in a changed node; an unreadable version leaves the version before in place."""
        if not self._readable(new):
            self._left_alone.setdefault(new.name, old)
            return
        before = self._left_alone.pop(new.name, old)
        if before is None:
            self.on_add(new)
            return
        began_ns = self._events.now_ns()
        try:
            self._cache.update_node(before, new)
        except CacheError as problem:
            _tolerate(problem)
        events = node_changes(before, new)
        self._changed(events, before, new, began_ns=began_ns)
        actions = Action(0)
        for event in events:
            actions |= event.action
        is_closed = new.spec.unschedulable and not before.spec.unschedulable
        if self._on_change is not None and (is_closed or actions & _SUITS):
            self._on_change(new.name, Action.UPDATE_NODE_LABEL in actions)

    def on_delete(self, node: Node, *, missed: bool) -> None:
        """Take in that a node is gone; pods on the node stay known until they are deleted."""
        if self._left_alone.pop(node.name, node) is None:
            return
        began_ns = self._events.now_ns()
        self._queue.move_all(NODE_DELETE, node, None)
        try:
            self._cache.remove_node(node)
        except CacheError as problem:
            _tolerate(problem)
        self._events.handled(NODE_DELETE.label, since_ns=began_ns)
        if self._on_change is not None:
            self._on_change(node.name, False)

    def _readable(self, node: Node) -> bool:
        try:
            for name, amount in node.status.allocatable.items():
                _quantity(name, amount)
        except ValueError as problem:
            self._report(node, problem)
            return False
        return True


class PodIngest(_Changing):
    """Pods to cache and queue.

    Parameters
    ----------
    cache, queue, store
        The state, and the newest version of each pod.
    profiles
        The schedulerNames this process serves, looked up at each pod: a reload may add some.
    writes
        Ends the overlay of every pod seen; None where nothing is written.
    facts
        Totals.
    waiting
        The pods held at Permit; None where no pod is held.
    announce
        Whether a new pod without a node may help other pods: members of a gang may wait for it.
    """

    def __init__(
        self,
        cache: Cache,
        queue: SchedulingQueue,
        store: PodStore,
        *,
        profiles: Collection[str],
        writes: PodWrites | None,
        facts: Facts,
        waiting: WaitingPods | None = None,
        announce: bool = False,
    ) -> None:
        super().__init__("Pod", facts)
        self._groups = cache.groups
        self._announce = announce
        self._cache = cache
        self._queue = queue
        self._store = store
        self._profiles = profiles
        self._writes = writes
        self._waiting = waiting

    def on_add(self, pod: Pod) -> None:
        """Take in a pod that appeared."""
        if not self._readable(pod):
            return
        self._store.put_pod(pod)
        if pod.spec.node_name:
            self._assigned(pod)
        elif self._responsible(pod):
            began_ns = self._events.now_ns()
            self._groups.put_pod(pod)
            self._queue.add(pod)
            if self._announce:
                self._queue.move_all(UNSCHEDULABLE_POD_ADD, None, pod)
            self._events.handled(UNSCHEDULABLE_POD_ADD.label, since_ns=began_ns)

    def on_update(self, old: Pod, new: Pod) -> None:
        """Take in a changed pod; an unreadable version leaves the version before in place."""
        before = self._store.info(new.metadata.namespace, new.metadata.name)
        if not self._readable(new, before):
            return
        if before is None:
            self.on_add(new)  # no version before could be read
            return
        old = before.pod
        if old.spec.node_name and old.spec.node_name != new.spec.node_name:
            self._moved(old, new)
            return
        self._store.put_pod(new)
        if self._writes is not None:
            self._writes.pod_shown(new)
        if old.spec.node_name:
            began_ns = self._events.now_ns()
            try:
                self._cache.update_pod(old, new)
            except CacheError as problem:
                _tolerate(problem)
            self._changed(pod_changes(old, new), old, new, began_ns=began_ns)
        elif new.spec.node_name:
            self._assigned(new)
            if self._responsible(new):
                self._queue.delete(new)
        elif self._responsible(new):
            began_ns = self._events.now_ns()
            self._unassigned_update(old, new)
            self._events.handled(UNSCHEDULABLE_POD_UPDATE.label, since_ns=began_ns)

    def on_delete(self, pod: Pod, *, missed: bool) -> None:
        """Take in that a pod is gone, or finished and so no longer watched."""
        known = self._store.remove(pod)
        if known is None:
            return  # no version of it could be read
        if self._writes is not None:
            self._writes.gone(pod)
        assigned = bool(pod.spec.node_name)
        if assigned or (missed and self._known_assigned(pod)):
            began_ns = self._events.now_ns()
            try:
                self._cache.remove_pod(pod)
            except CacheCorruptedError:
                self._remove_where_held(pod)
            except CacheError as problem:
                _tolerate(problem)
            self._queue.move_all(ASSIGNED_POD_DELETE, pod, None)
            self._events.handled(ASSIGNED_POD_DELETE.label, since_ns=began_ns)
        # The pod may have got its node in a version that could not be read: it is queued still.
        if (missed or not known.spec.node_name) and self._responsible(pod):
            began_ns = self._events.now_ns()
            self._unassigned_delete(pod)
            self._events.handled(UNSCHEDULABLE_POD_DELETE.label, since_ns=began_ns)

    def _readable(self, pod: Pod, before: PodInfo | None = None) -> bool:
        try:
            self._check_uid(pod)
            info_of(pod, like=before).part(RESOURCES)
        except ValueError as problem:
            self._report(pod, problem)
            return False
        return True

    def _moved(self, old: Pod, new: Pod) -> None:
        """Take in a pod that the server says is on another node now, which no pod ever is.

        The new version counts, as if the pod had been deleted and made again.
        """
        _log.error(
            "Pod %s: spec.nodeName: changed from %s to %r, though a pod never moves; the new "
            "version counts",
            new.full_name,
            old.spec.node_name,
            new.spec.node_name,
        )
        self.on_delete(old, missed=True)
        self.on_add(new)

    def _remove_where_held(self, pod: Pod) -> None:
        """Remove a deleted pod from the node that the cache knows: a pod never moves."""
        cached = self._cache.get_pod(pod.uid)
        _log.error(
            "Pod %s: spec.nodeName: deleted on %s, though it was on %s",
            pod.full_name,
            pod.spec.node_name,
            cached.spec.node_name,
        )
        self._cache.remove_pod(cached)

    def _check_uid(self, pod: Pod) -> None:
        """Refuse a pod that cannot be told from others: state and writes go by the uid."""
        if not pod.uid:
            raise ValueError("metadata.uid: there is none")
        known = self._store.name_of(pod.uid)
        if known is not None and known != (pod.metadata.namespace, pod.metadata.name):
            raise ValueError(f"metadata.uid: pod {'/'.join(known)} has the same uid")

    def _assigned(self, pod: Pod) -> None:
        began_ns = self._events.now_ns()
        try:
            self._cache.add_pod(pod)
        except CacheError as problem:
            _tolerate(problem)
        self._queue.move_all(ASSIGNED_POD_ADD, None, pod)
        self._events.handled(ASSIGNED_POD_ADD.label, since_ns=began_ns)

    def _unassigned_update(self, old: Pod, new: Pod) -> None:
        if old.metadata.resource_version == new.metadata.resource_version:
            return
        self._groups.put_pod(new)
        if self._cache.is_assumed(new.metadata.uid):
            if new.metadata.deletion_timestamp and not old.metadata.deletion_timestamp:
                self._assumed_deleted(new)
            else:
                self._queue.update(old, new, assumed=True)
            return
        self._queue.update(old, new)
        if old.metadata.labels != new.metadata.labels:
            self._group_changed(old, new)
        before = old.status.nominated_node_name
        if before and before != new.status.nominated_node_name:
            self._nomination_gone(old)

    def _group_changed(self, old: Pod, new: Pod) -> None:
        """Try a pod again that names another group now, and those that wait in that group."""
        key = self._groups.key_of(new)
        if key != self._groups.key_of(old):
            others = [] if key is None else self._groups.members(key).waiting_pods()
            self._queue.activate([new, *(each for each in others if each.uid != new.uid)])

    def _unassigned_delete(self, pod: Pod) -> None:
        self._groups.remove(pod.uid)
        self._queue.delete(pod)
        if self._cache.is_assumed(pod.metadata.uid):
            self._assumed_deleted(pod)
        elif pod.status.nominated_node_name:
            self._nomination_gone(pod)

    def _assumed_deleted(self, pod: Pod) -> None:
        """Stop counting a pod deleted while it is being bound; its binding fails at the API.

        A pod held at Permit is turned away, and its binding task takes everything back.
        """
        assumed = self._cache.get_pod(pod.metadata.uid)
        if self._waiting is None or not self._waiting.remove(pod.uid):
            self._cache.forget_pod(assumed)
        self._queue.move_all(ASSIGNED_POD_DELETE, assumed, None)

    def _nomination_gone(self, pod: Pod) -> None:
        """Wake the pods that had to leave room, volumes or devices to a nominated pod.

        The binding cycle has woken them for a pod that was placed without a nomination, but only
        those that were tried since. Otherwise groups would wake each other for ever.
        """
        if self._queue.reader.is_only_reported(pod):
            return
        priority = pod.priority
        for event in (ASSIGNED_POD_DELETE, RESERVATION_DELETE):
            self._queue.move_all(
                event, pod, None, precheck=lambda other: other.priority <= priority
            )

    def _known_assigned(self, pod: Pod) -> bool:
        try:
            self._cache.get_pod(pod.uid)
        except CacheError:
            return False
        return not self._cache.is_assumed(pod.uid)

    def _responsible(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self._profiles


class SucceededIngest(_Reporting):
    """Pods that have succeeded: they are counted where they are members of a group.

    Parameters
    ----------
    groups
        The groups.
    queue
        The members that wait are tried again: fewer others are needed now.
    facts
        Totals.
    """

    def __init__(self, groups: PodGroups, queue: SchedulingQueue, facts: Facts) -> None:
        super().__init__("Pod", facts)
        self._groups = groups
        self._queue = queue

    def on_add(self, pod: Pod) -> None:
        """Take in a pod that has succeeded."""
        key = self._groups.key_of(pod)
        if key is not None:
            self._groups.succeeded.put_pod(pod, key)
            self._queue.activate(self._groups.members(key).waiting_pods())

    def on_update(self, old: Pod, new: Pod) -> None:
        """Do nothing: what has succeeded stays so."""

    def on_delete(self, pod: Pod, *, missed: bool) -> None:
        """Take in that a pod exists no more."""
        del missed
        self._groups.succeeded.remove_pod(pod.uid)


class ListerIngest(_Reporting, Generic[K]):
    """Objects of any other kind: kept in a lister, and told to the queue if plugins wait for them.

    Parameters
    ----------
    kind
        For messages.
    lister
        Receives the objects.
    resource
        Name in cluster events; None for kinds no event is about.
    queue
        Takes in every change.
    facts
        Totals.
    """

    def __init__(
        self,
        kind: str,
        lister: Lister[K],
        *,
        resource: str | None,
        queue: SchedulingQueue,
        facts: Facts,
    ) -> None:
        super().__init__(kind, facts)
        self._lister = lister
        self._resource = resource
        self._queue = queue

    def on_add(self, obj: K) -> None:
        """Take in an object that appeared."""
        began_ns = self._events.now_ns()
        self._lister.put(obj)
        self._move_pods(Action.ADD, None, obj, began_ns=began_ns)

    def on_update(self, old: K, new: K) -> None:
        """Take in a changed object."""
        began_ns = self._events.now_ns()
        self._lister.put(new)
        self._move_pods(Action.UPDATE, old, new, began_ns=began_ns)

    def on_delete(self, obj: K, *, missed: bool) -> None:
        """Take in that an object is gone."""
        began_ns = self._events.now_ns()
        self._lister.remove(obj)
        self._move_pods(Action.DELETE, obj, None, began_ns=began_ns)

    def _move_pods(self, action: Action, old: K | None, new: K | None, *, began_ns: int) -> None:
        if self._resource is not None:
            event = ClusterEvent(self._resource, action)
            self._queue.move_all(event, old, new)
            self._events.handled(event.label, since_ns=began_ns)
