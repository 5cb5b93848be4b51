"""The own course of a configuration: the same pods and nodes, and its own decisions accumulate.

A model (`moorage.virtual.model`) is fed with what is seen of the live cluster: pods that
appear and end, nodes and all other objects. Only bindings and evictions are its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec

from moorage.api.pod import Pod, PodSpec
from moorage.base.clock import NS_PER_SECOND
from moorage.shadow.fullness import Fullness, fullness_of
from moorage.state.lifecycle import PodState
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.model import ClusterModel

_LEFTOVER_NS: Final = 30 * NS_PER_SECOND  # as often as a scheduler looks


class ShadowCluster(ClusterModel):
    """The course that the cluster would have taken with the configuration.

    Parameters
    ----------
    inputs
        The cluster at the start: pods that have a node keep it.

    Attributes
    ----------
    counts
        The number of pods ``bound``, ``evicted`` for another pod, and ``lost`` with that.
    """

    def __init__(self, inputs: ClusterInputs) -> None:
        super().__init__(inputs)
        self._looked_ns = self.virtual_now_ns
        self.counts: Counter[str] = Counter()

    def pass_time(self, now_ns: int) -> None:
        """Let everything happen that is due until a moment of the live cluster."""
        left_ns = now_ns - self.virtual_now_ns
        if left_ns < 0:
            return
        self.settle(within_seconds=left_ns / NS_PER_SECOND)
        self.half.clock.advance_ns(max(0, now_ns - self.virtual_now_ns))
        self.mark()  # nobody asks what was touched
        if now_ns - self._looked_ns >= _LEFTOVER_NS:
            self._looked_ns = now_ns
            self.half.core.queue.flush_unschedulable_leftover()

    def add_pod(self, pod: Pod) -> Pod:
        """Put a new pod; a pod that an owner makes here is left out where its name is taken."""
        found = self.objects.pods.get(pod.key)
        return super().add_pod(pod) if found is None else found

    def bind(self, pod: Pod, node_name: str) -> bool:
        """Bind a pod; False if it is gone or being deleted."""
        done = super().bind(pod, node_name)
        self.counts["bound"] += done
        return done

    def leave(
        self,
        pod: Pod,
        *,
        by: Pod | None = None,
        at_once: bool = False,
        returns: bool = True,
        deleted: bool = False,
    ) -> None:
        """Delete a pod; its owner makes another."""
        before = self.evictions.get(pod.uid)
        super().leave(pod, by=by, at_once=at_once, returns=returns, deleted=deleted)
        eviction = self.evictions.get(pod.uid)
        if by is not None and before is None and eviction is not None:
            self.counts["evicted"] += 1
            self.counts["lost"] += eviction.lost

    def appear(self, pod: Pod) -> None:
        """Put a pod that was created in the live cluster.

        A pod without a node is decided about here. Its name may be taken by a pod that was made
        here for another that had to leave; the live pod takes that pod's place.
        """
        other = self.objects.pods.get(pod.key)
        if other is not None:
            self.drop_pod(other)
        status = pod.status
        if not pod.spec.node_name:
            status = msgspec.structs.replace(status, nominated_node_name="", conditions=[])
        self.add_pod(msgspec.structs.replace(pod, status=status))

    def change(self, old: Pod, new: Pod) -> None:
        """Take in a change of a live pod.

        The node of a pod that another scheduler places is the live one. The node of any other pod
        is decided here: its labels, its deletion and the rest of its spec are taken over, and its
        node stays. A change of anything else decides nothing.
        """
        current = self.current(new)
        if current is None:
            return  # the pod has left here
        if not self._decides(new) and new.spec.node_name != current.spec.node_name:
            self.update_pod(new)
        elif _what_counts(old) != _what_counts(new):
            spec = msgspec.structs.replace(new.spec, node_name=current.spec.node_name)
            self.update_pod(msgspec.structs.replace(current, metadata=new.metadata, spec=spec))

    def end_pod(self, pod: Pod) -> None:
        """Remove a pod that is gone from the live cluster.

        A pod that was evicted here has left already. Its owner made another one here, which may
        have been evicted in its turn: the last one of them ends.
        """
        uid = pod.uid
        while uid in self.evictions:
            uid = self.evictions.pop(uid).successor
        self.bound.pop(pod.uid, None)
        last = self.objects.pods.get(pod.key)
        if uid != pod.uid:  # a pod that an owner made may have another name
            last = next((each for each in self.objects.pods.values() if each.uid == uid), None)
        if last is not None and last.uid == uid:
            self.drop_pod(last)

    def fullness(self) -> Fullness:
        """Return how full the cluster is in this course."""
        core = self.half.core
        states = (PodState.ACTIVE, PodState.BACKOFF, PodState.UNSCHEDULABLE, PodState.GATED)
        pending = sum(len(core.queue.lifecycle.in_state(each)) for each in states)
        return fullness_of(core.snapshot, pending=pending)

    def _decides(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self.half.core.profiles


def _what_counts(pod: Pod) -> tuple[Mapping[str, str], str | None, PodSpec]:
    """Return what decisions read of a pod, apart from its node."""
    spec = msgspec.structs.replace(pod.spec, node_name="")
    return pod.metadata.labels, pod.metadata.deletion_timestamp, spec
