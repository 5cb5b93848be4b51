"""Nominations: which pods hope to get which node, so that others leave them the room.

A preemptor is nominated to the node it freed; the Filter step counts nominated pods of equal or
higher priority as if they were there already. Written by the queue and the failure handler, read
(through a narrow view) by the engine.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeAlias

import msgspec

from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod
from moorage.state.contracts import PodLookup
from moorage.state.queued_pod import PodKey

QueuedLookup: TypeAlias = Callable[[PodKey], Pod | None]
"""Key of a pod -> the pod if it waits in some sub-queue, else None."""


class NominatingInfo(msgspec.Struct, frozen=True):
    """A nomination decided by an attempt, overriding what the pod's status says.

    Parameters
    ----------
    node_name
        The node; empty withdraws the nomination.
    """

    node_name: str


class _Ref(NamedTuple):
    uid: str
    key: PodKey
    node_name: str


class Nominator:
    """Who is nominated where.

    Parameters
    ----------
    pod_lookup
        The API's newest version of a pod; one that is gone or bound is not nominated.
    queued_lookup
        The queue's version of a pod.
    on_change
        Called with a node's name whenever `for_node` may answer differently for it; not for "",
        where withdrawn nominations are.

    Notes
    -----
    Kubernetes v1.36 ``pkg/scheduler/backend/queue/nominator.go``.
    """

    def __init__(
        self,
        pod_lookup: PodLookup,
        queued_lookup: QueuedLookup,
        *,
        on_change: Callable[[str], None] | None = None,
    ) -> None:
        self._pod_lookup = pod_lookup
        self._queued_lookup = queued_lookup
        self.on_change = on_change
        self._by_uid: dict[str, _Ref] = {}
        # Node name -> refs by uid, in order of nomination. The same refs as above; none is empty.
        self._by_node: dict[str, dict[str, _Ref]] = {}

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

    def only_one(self, uid: str, node_name: str) -> bool:
        """Whether a pod is the only one nominated to a node."""
        refs = self._by_node.get(node_name)
        return refs is not None and len(refs) == 1 and uid in refs

    def add(self, pod: Pod, info: NominatingInfo | None) -> None:
        """Nominate a pod, replacing an earlier nomination of it.

        Parameters
        ----------
        pod
            The pod.
        info
            The attempt's decision; None takes ``status.nominatedNodeName``.
        """
        if pod.metadata.uid in self._by_uid:
            self.delete(pod)
        node_name = pod.status.nominated_node_name if info is None else info.node_name
        if info is None and not node_name:
            return
        metadata = pod.metadata
        current = self._pod_lookup(metadata.namespace, metadata.name)
        if current is None or current.spec.node_name:
            return
        uid = metadata.uid
        ref = _Ref(uid, (metadata.namespace, metadata.name), node_name)
        self._by_uid[uid] = ref
        self._by_node.setdefault(node_name, {})[uid] = ref
        self._changed(node_name)

    def update(self, old: Pod | None, new: Pod) -> None:
        """Follow a new version of a pod, keeping a nomination that only we know of.

        Between the decision and its appearance in the pod's status, updates come that do not show
        it yet; they must not withdraw it.
        """
        uid = new.metadata.uid
        known = self._by_uid.get(uid)
        told = new.status.nominated_node_name or (old and old.status.nominated_node_name)
        info = None if told or known is None else NominatingInfo(known.node_name)
        if old is not None and old.metadata.uid != uid:
            self.delete(old)
        self.add(new, info)

    def delete(self, pod: Pod) -> None:
        """Withdraw a pod's nomination; does nothing if there is none."""
        ref = self._by_uid.pop(pod.metadata.uid, None)
        if ref is None:
            return
        refs = self._by_node[ref.node_name]
        del refs[ref.uid]
        if not refs:
            del self._by_node[ref.node_name]
        self._changed(ref.node_name)

    def for_node(self, node_name: str) -> list[Pod]:
        """Return the pods nominated to a node, in order of nomination.

        A pod that is in no sub-queue (in flight, or held by Permit) is given as name, namespace and
        uid alone: no requests, priority 0.
        """
        return [self._pod(ref) for ref in self._by_node.get(node_name, {}).values()]

    def touch(self, uid: str) -> None:
        """Tell listeners that a pod entered or left the sub-queues, if it is nominated."""
        ref = self._by_uid.get(uid)
        if ref is not None and ref.node_name and self.on_change is not None:
            self.on_change(ref.node_name)

    def validate(self) -> None:
        """Check that both arrangements hold the same nominations."""
        by_node = {uid: ref for refs in self._by_node.values() for uid, ref in refs.items()}
        assert by_node == self._by_uid, "nominations by node and by pod differ"
        assert all(self._by_node.values()), "a node without nominations was kept"

    def _pod(self, ref: _Ref) -> Pod:
        namespace, name = ref.key
        found = self._queued_lookup(ref.key)
        if found is not None and found.uid == ref.uid:
            return found
        return Pod(metadata=ObjectMeta(name=name, namespace=namespace, uid=ref.uid))

    def _changed(self, node_name: str) -> None:
        # A withdrawn nomination is kept as one to no node, as upstream does. Every pod that fits
        # nowhere is there: telling of it would make each failed attempt cost them all.
        if node_name and self.on_change is not None:
            self.on_change(node_name)
