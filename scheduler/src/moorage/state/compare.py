"""Compares the cache and the queue with the objects of the API, on demand (SIGUSR2).

Reads only. A difference need not be a fault: the watch may not have delivered a change yet. A
difference that stays is a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.state.cache import Cache
from moorage.state.queue import SchedulingQueue

_FINISHED_PHASES = frozenset({"Succeeded", "Failed"})


class Mismatch(msgspec.Struct, frozen=True):
    """Differences between the scheduler and the API; every list is sorted.

    Parameters
    ----------
    missed_nodes, redundant_nodes
        Names of nodes the API has and the cache has not, and the reverse.
    missed_pods, redundant_pods
        Uids of pods the API has and neither cache nor queue knows, and the reverse.
    misplaced_pods
        (uid, node in the cache, node in the API) of confirmed pods on the wrong node; the API's
        node is empty if it says the pod has none.
    """

    missed_nodes: tuple[str, ...] = ()
    redundant_nodes: tuple[str, ...] = ()
    missed_pods: tuple[str, ...] = ()
    redundant_pods: tuple[str, ...] = ()
    misplaced_pods: tuple[tuple[str, str, str], ...] = ()

    @property
    def empty(self) -> bool:
        """Whether there is no difference."""
        return self == Mismatch()


def compare(
    cache: Cache,
    queue: SchedulingQueue,
    api_pods: Iterable[Pod],
    api_nodes: Iterable[Node],
    *,
    responsible: Callable[[Pod], bool] | None = None,
) -> Mismatch:
    """Compare cache and queue with what the API lists.

    Parameters
    ----------
    cache, queue
        The belief.
    api_pods, api_nodes
        The API's objects. Finished pods are passed over: they take no room.
    responsible
        Selects the pods without a node that this scheduler queues; None means all.

    Notes
    -----
    Kubernetes v1.36 ``pkg/scheduler/backend/cache/debugger/comparer.go``. kube-scheduler reports
    pods in flight, and other schedulers' pending pods, as missed; here they are accounted for.
    Misplaced pods are an addition.
    """
    believed = cache.dump()
    nodes = {node.name for node in api_nodes}
    pods = {pod.uid: pod for pod in api_pods if pod.status.phase not in _FINISHED_PHASES}
    expected = {
        uid
        for uid, pod in pods.items()
        if pod.spec.node_name or responsible is None or responsible(pod)
    }
    pending = queue.pending()
    queued = {pod.uid for pod in pending.queued_pods()}
    known = queued.union(believed.pods)
    # A pod in flight belongs to its attempt, which will find out whether the API still has the pod.
    in_flight = set(pending.in_flight)
    assumed = set(believed.assumed)
    misplaced = [
        (uid, node_name, pods[uid].spec.node_name)
        for uid, node_name in believed.node_of_pod.items()
        if uid in pods and uid not in assumed and pods[uid].spec.node_name != node_name
    ]
    return Mismatch(
        missed_nodes=tuple(sorted(nodes - believed.nodes.keys())),
        redundant_nodes=tuple(sorted(believed.nodes.keys() - nodes)),
        missed_pods=tuple(sorted(expected - known - in_flight)),
        redundant_pods=tuple(sorted(known - pods.keys())),
        misplaced_pods=tuple(sorted(misplaced)),
    )
