"""Nominations: the node that each preemptor waits for, so that other pods leave the room.

A preemptor is nominated to the node it freed. The Filter step counts nominated pods of equal or
higher priority as if they were on the node already. The queue writes nominations, and tells
which version of a nominated pod waits in a sub-queue; the snapshot reads them (`Nominator.log`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod
from moorage.base.no_names import NO_NAMES
from moorage.snapshot.key_log import KeyLog
from moorage.state.contracts import PodLookup
from moorage.state.queued_pod import PodKey


class NominatingInfo(msgspec.Struct, frozen=True):
    """A nomination decided by an attempt; it overrides the nomination in the pod's status.

    Parameters
    ----------
    node_name
        The node; empty withdraws the nomination.
    victims
        The uids of the pods that are evicted for it.
    """

    node_name: str
    victims: frozenset[str] = NO_NAMES


class _Ref(NamedTuple):
    uid: str
    key: PodKey
    node_name: str
    victims: frozenset[str] = NO_NAMES


class Nominator:
    """The nominations of all pods.

    Parameters
    ----------
    pod_lookup
        The API's newest version of a pod. A pod that is gone or bound is not nominated.

    Attributes
    ----------
    log
        Names of the nodes for which the answer of `for_node` changed. The name "" of withdrawn
        nominations never occurs.

    Notes
    -----
    Kubernetes v1.36 ``pkg/scheduler/backend/queue/nominator.go``.
    """

    def __init__(self, pod_lookup: PodLookup) -> None:
        self._pod_lookup = pod_lookup
        self.log: KeyLog[str] = KeyLog()
        self._by_uid: dict[str, _Ref] = {}
        # Node name -> refs by uid, in order of nomination. The same refs as above; none is empty.
        self._by_node: dict[str, dict[str, _Ref]] = {}
        # uid -> the version in a sub-queue, of the nominated pods that are in one.
        self._queued: dict[str, Pod] = {}
        # The uids of the pods with required anti-affinity that are nominated to a node.
        self._repelling: set[str] = set()
        # The uids of the pods with a hard spread of their own that are nominated to a node.
        self._spreading: set[str] = set()

    def __len__(self) -> int:
        return len(self._by_uid)

    def __contains__(self, uid: str) -> bool:
        return uid in self._by_uid

    def __iter__(self) -> Iterator[tuple[str, str]]:
        """Iterate over (uid, node name), in order of nomination."""
        return iter([(ref.uid, ref.node_name) for ref in self._by_uid.values()])

    def node_of(self, uid: str) -> str | None:
        """Return the node a pod is nominated to, or None."""
        ref = self._by_uid.get(uid)
        return ref.node_name if ref is not None else None

    def victims_of(self, uid: str) -> frozenset[str] | None:
        """Return the uids of the pods evicted for a nominated pod; None for another pod."""
        ref = self._by_uid.get(uid)
        return ref.victims if ref is not None else None

    def may_repel(self) -> bool:
        """Whether any pod that is nominated to a node has required anti-affinity."""
        return bool(self._repelling)

    def may_spread(self) -> bool:
        """Whether any pod that is nominated to a node has a hard spread of its own."""
        return bool(self._spreading)

    def only_one(self, uid: str, node_name: str) -> bool:
        """Whether a pod is the only one nominated to a node."""
        refs = self._by_node.get(node_name)
        return refs is not None and len(refs) == 1 and uid in refs

    def add(self, pod: Pod, info: NominatingInfo | None, *, queued: Pod | None) -> None:
        """Nominate a pod, replacing an earlier nomination of it.

        Parameters
        ----------
        pod
            The pod.
        info
            The attempt's decision; None takes ``status.nominatedNodeName``.
        queued
            The version of the pod that is in a sub-queue; None while it is in none.
        """
        before = self._by_uid.get(pod.metadata.uid)
        if before is not None:
            self.withdraw_nomination(pod)
        node_name = pod.status.nominated_node_name if info is None else info.node_name
        if info is None and not node_name:
            return
        metadata = pod.metadata
        current = self._pod_lookup(metadata.namespace, metadata.name)
        if current is None or current.spec.node_name:
            return
        uid, victims = metadata.uid, NO_NAMES if info is None else info.victims
        if before is not None and before.node_name == node_name:
            victims |= before.victims  # earlier victims may still be stopping
        ref = _Ref(uid, (metadata.namespace, metadata.name), node_name, victims)
        self._by_uid[uid] = ref
        self._by_node.setdefault(node_name, {})[uid] = ref
        if node_name and _repels(pod):
            self._repelling.add(uid)
        if node_name and pod.spec.must_spread:
            self._spreading.add(uid)
        if queued is not None:
            self._queued[uid] = queued
        self._mark_node(node_name)

    def update(self, old: Pod | None, new: Pod) -> None:
        """Follow a new version of a queued pod, keeping a nomination that only we know of.

        Between the decision and its appearance in the pod's status, updates come that do not show
        the nomination yet. These updates must not withdraw it.
        """
        uid = new.metadata.uid
        known = self._by_uid.get(uid)
        told = new.status.nominated_node_name or (old and old.status.nominated_node_name)
        info = None if told or known is None else NominatingInfo(known.node_name)
        if old is not None and old.metadata.uid != uid:
            self.withdraw_nomination(old)
        self.add(new, info, queued=new)

    def withdraw_nomination(self, pod: Pod) -> None:
        """Withdraw a pod's nomination; does nothing if there is none."""
        ref = self._by_uid.pop(pod.metadata.uid, None)
        if ref is None:
            return
        refs = self._by_node[ref.node_name]
        del refs[ref.uid]
        self._queued.pop(ref.uid, None)
        self._repelling.discard(ref.uid)
        self._spreading.discard(ref.uid)
        if not refs:
            del self._by_node[ref.node_name]
        self._mark_node(ref.node_name)

    def for_node(self, node_name: str) -> list[Pod]:
        """Return the pods nominated to a node, in order of nomination.

        A pod that is in no sub-queue (in flight, or held by Permit) is given as name, namespace and
        uid alone: no requests, priority 0.
        """
        return [self._pod(ref) for ref in self._by_node.get(node_name, {}).values()]

    def entered(self, pod: Pod) -> None:
        """Note that a pod entered a sub-queue, in this version."""
        ref = self._by_uid.get(pod.metadata.uid)
        # A pod that moves from one sub-queue to another is there already.
        if ref is not None and self._queued.get(ref.uid) is not pod:
            self._queued[ref.uid] = pod
            self._mark_node(ref.node_name)

    def left(self, uid: str) -> None:
        """Note that a pod left the sub-queues."""
        ref = self._by_uid.get(uid)
        if ref is not None:
            self._queued.pop(uid, None)
            self._mark_node(ref.node_name)

    def queued_version(self, uid: str) -> Pod | None:
        """Return the version of a nominated pod that is in a sub-queue, None while none is."""
        return self._queued.get(uid)

    def validate(self) -> None:
        """Check that all indexes hold the same nominations."""
        by_node = {uid: ref for refs in self._by_node.values() for uid, ref in refs.items()}
        assert by_node == self._by_uid, "nominations by node and by pod differ"
        assert all(self._by_node.values()), "a node without nominations was kept"
        strays = self._queued.keys() - self._by_uid.keys()
        assert not strays, f"the queued version of pods that are not nominated: {sorted(strays)}"

    def _pod(self, ref: _Ref) -> Pod:
        queued = self._queued.get(ref.uid)
        if queued is not None:
            return queued
        namespace, name = ref.key
        return Pod(metadata=ObjectMeta(name=name, namespace=namespace, uid=ref.uid))

    def _mark_node(self, node_name: str) -> None:
        # A withdrawn nomination is kept under the node name "", as upstream does. Every pod that
        # fits nowhere is there: logging "" would make each failed attempt cost a look at all of
        # them.
        if node_name:
            self.log.append(node_name)


def _repels(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    terms = None if affinity is None else affinity.pod_anti_affinity
    return terms is not None and bool(terms.required_during_scheduling_ignored_during_execution)
