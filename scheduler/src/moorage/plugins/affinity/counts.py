"""The counts by which InterPodAffinity judges rows: of pods on nodes, and of nominated pods too.

PreFilter makes the counts. A trial that adds pods to rows, or removes them, makes new ones. The
rows that fail are read off the counts.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/interpodaffinity/filtering.go``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
import numpy as np

from moorage.plugins.affinity.domain_counts import BoolArray, ByKey, Moved
from moorage.plugins.affinity.incoming import IncomingAffinity, means
from moorage.snapshot.pod_affinity import POD_AFFINITY
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

NO_COUNTS: Final[ByKey] = {}
"""The counts of no term."""


class AffinityCounts(msgspec.Struct, frozen=True):
    """Counts of pods, by topology key and domain.

    Parameters
    ----------
    incoming
        The pod's own terms.
    existing
        Existing pods whose anti-affinity matches the pod ("EA").
    near
        Pods that match all required affinity terms of the pod ("AF").
    away
        Pods that match an anti-affinity term of the pod ("AA").
    """

    incoming: IncomingAffinity
    existing: ByKey
    near: ByKey
    away: ByKey


class Counts(msgspec.Struct, frozen=True):
    """The result of PreFilter.

    Parameters
    ----------
    placed
        The counts of the pods on nodes.
    beside
        The counts with the pods nominated first as well, each on its node; None where no
        nominated pod changes a count.
    """

    placed: AffinityCounts
    beside: AffinityCounts | None


def after(
    snapshot: Snapshot,
    counts: AffinityCounts,
    pod: PodInfo,
    others: Iterable[tuple[int, PodInfo]],
    *,
    step: int,
) -> AffinityCounts:
    """Return the counts after pods are added to rows or removed; the same counts for no change.

    Parameters
    ----------
    snapshot
        The cluster.
    counts, pod
        The counts, and the pod about which they are.
    others
        The other pods, each with its row.
    step
        +1 to add the pods, -1 to remove them.
    """
    incoming, mine = counts.incoming, pod.pod.metadata.labels
    of_namespace = namespace_labels(snapshot, pod.namespace)
    existing, near, away = Moved(counts.existing), Moved(counts.near), Moved(counts.away)
    for row, other in others:
        namespace, labels = other.namespace, other.pod.metadata.labels
        for term in other.part(POD_AFFINITY).value.required_anti:
            if term.selects_pod(pod.namespace, mine, of_namespace):
                key = term.topology_key
                existing.move(key, snapshot.label_column(key), row, step)
        if incoming.is_near(namespace, labels):
            for key in incoming.keys:
                near.move(key, snapshot.label_column(key), row, step)
        for term in incoming.required_anti:
            if means(term, namespace, labels):
                away.move(term.topology_key, snapshot.label_column(term.topology_key), row, step)
    if not (existing.changed or near.changed or away.changed):
        return counts
    return AffinityCounts(incoming, existing.counts, near.counts, away.counts)


def unmet(counts: AffinityCounts, pod: PodInfo, view: NodeView) -> BoolArray | None:
    """Return bool, (rows of the view,): rows that fail the pod's affinity; None for no row."""
    if not counts.near:
        return None
    lacking: BoolArray | None = None
    for domains in counts.near.values():
        below = domains.rows_without(view)
        lacking = below if lacking is None else lacking | below
    assert lacking is not None
    if not np.count_nonzero(lacking) or not _is_first_of_its_kind(counts, pod):
        return lacking
    # The first pod of a group with affinity to itself: any node that has the labels is allowed.
    missing = np.zeros(len(view), np.bool_)
    for domains in counts.near.values():
        missing |= view.take_rows(domains.column.ids) < 0
    return missing


def _is_first_of_its_kind(counts: AffinityCounts, pod: PodInfo) -> bool:
    if any(domains.by_domain.any() for domains in counts.near.values()):
        return False
    return counts.incoming.is_near(pod.namespace, pod.pod.metadata.labels)


def taken(counts: ByKey, view: NodeView) -> BoolArray | None:
    """Return bool, (rows of the view,): rows with a count in any domain; None for no row."""
    found: BoolArray | None = None
    for domains in counts.values():
        here = domains.rows_above_zero(view)
        found = here if found is None else found | here
    return found


def namespace_labels(snapshot: Snapshot, namespace: str) -> Mapping[str, str]:
    """Return the labels of a namespace; none where the namespace is unknown."""
    found = snapshot.listers.namespaces.get(namespace)
    return {} if found is None else found.metadata.labels
