"""Rules about what a scheduler counts for its metrics, and about what it keeps within a bound."""

from __future__ import annotations

from collections.abc import Iterable

from moorage.service.scheduler import Scheduler
from moorage_lab.fault_sim.cluster import SimCluster
from moorage_lab.fault_sim.history import is_finished, node_of
from moorage_lab.fault_sim.invariants.inside import leaders, synced
from moorage_lab.fault_sim.invariants.invariant import Invariant

# The bounds that the documents promise: of the entries about one pod, the pods that are gone and
# whose history is still told, and the Events that wait to be written.
_ENTRIES_MOST = 50
_GONE_MOST = 4096
_EVENTS_MOST = 1000
_ACCEPTED = "scheduled"


def _counts(cluster: SimCluster) -> Iterable[str]:
    """Compare with what the server did: a pod that is bound counts, whatever answer came.

    Where the answer is lost, another scheduler may bind the pod to the same node. A binding that
    was feigned counts, because nothing tells it from another.
    """
    history = cluster.history
    for scheduler, identity in zip(cluster.schedulers, cluster.identities, strict=True):
        bindings = len(history.tried_binding.get(identity, set()) & history.ever_placed)
        bindings += cluster.replicas[identity.partition(".")[0]].faults.fault_counts.get(
            "feigned", 0
        )
        if scheduler.facts.bound > bindings:
            yield f"{identity} counts {scheduler.facts.bound}, the server {bindings}"


def _gauges(cluster: SimCluster) -> Iterable[str]:
    """Compare each number that goes up and down with the things that it counts, in the server."""
    pods = cluster.history.pods.values()
    placed = sum(bool(node_of(pod)) and not is_finished(pod) for pod in pods)
    for scheduler in leaders(cluster):
        pending = scheduler.core.queue.pending()
        for queue in ("active", "backoff", "unschedulable", "gated"):
            gauge = scheduler.core.queue_facts.pending_pods[queue]
            count = len(getattr(pending, queue))
            if gauge != count:
                yield f"pending_pods says {gauge} in {queue}, and {count} are there"
        counts = scheduler.core.cache.counts()
        if counts.pods != placed:
            yield f"cache_size says {counts.pods} pods, and {placed} have a node"
        if events := {event: n for event, n in _events(scheduler).items() if n}:
            yield f"inflight_events says {events}, and nothing is in flight"


def _events(scheduler: Scheduler) -> dict[str, int]:
    return dict(scheduler.core.queue_facts.events_in_flight)


def _totals(cluster: SimCluster) -> Iterable[str]:
    """Compare the attempts that ended well with the bindings, as the same scheduler counts them."""
    for scheduler, identity in zip(cluster.schedulers, cluster.identities, strict=True):
        results = scheduler.facts.attempts.results.items()
        attempts = sum(count for labels, count in results if _ACCEPTED in labels)
        bound = scheduler.facts.bound
        if attempts != bound:
            yield f"{identity}: {attempts} attempts end with a node, {bound} bindings"


def _bounded(cluster: SimCluster) -> Iterable[str]:
    """Look at everything that a scheduler keeps within a bound."""
    pods = len(cluster.history.pods)
    for scheduler in synced(cluster):
        core, parts = scheduler.core, scheduler.parts
        recorder, histories = core.recorder, core.cache.lifecycle.histories
        if recorder is not None and recorder.ring.nbytes > recorder.ring.bytes_max:
            yield f"records take {recorder.ring.nbytes} of {recorder.ring.bytes_max} bytes"
        if len(histories) > pods + _GONE_MOST:
            yield f"{len(histories)} histories are kept, and {pods} pods are there"
        longest = max((len(each.entries) for each in histories), default=0)
        if longest > _ENTRIES_MOST:
            yield f"{longest} entries are kept about one pod"
        if parts.recorder.waiting > _EVENTS_MOST:
            yield f"{parts.recorder.waiting} Events wait to be written"


ACCOUNTS: tuple[Invariant[SimCluster], ...] = (
    Invariant(
        "counts",
        "No scheduler counts a binding that did not happen.",
        "metrics that nobody can rely on",
        _counts,
    ),
    Invariant(
        "gauges",
        "Gauges of the metrics equal what they count.",
        "a gauge drifts away, as it is counted up and down",
        _gauges,
    ),
    Invariant(
        "totals",
        "Attempts with the result scheduled equal the bindings.",
        "an attempt that is counted twice, or not at all",
        _totals,
    ),
    Invariant(
        "bounded",
        "What is kept within a bound is within it.",
        "memory that grows until the process is killed (kubernetes#120585)",
        _bounded,
    ),
)
