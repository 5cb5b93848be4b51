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

from moorage.plugins.affinity.domain_counts import BoolArray, ByKey, DomainArray, Moved
from moorage.plugins.affinity.incoming import IncomingAffinity, means
from moorage.snapshot.pod_affinity import POD_AFFINITY
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

NO_COUNTS: Final[ByKey] = {}
"""The counts of no term."""


GoneByKey = Mapping[str, DomainArray]
"""By topology key, int64, (rows of a view,): what pods that left a row had added to its domain."""
NO_GONE: Final[GoneByKey] = {}


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


class Gone(msgspec.Struct, frozen=True):
    """Pods that left the rows of a view, by topology key; int64, (rows of the view,) each.

    Parameters
    ----------
    existing, near, away
        What these pods had added to the counts of their row's domain.
    """

    existing: GoneByKey = {}
    near: GoneByKey = {}
    away: GoneByKey = {}


NOBODY_GONE: Final = Gone()
"""No pod left its row."""


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


def unmet(
    counts: AffinityCounts, pod: PodInfo, view: NodeView, gone: GoneByKey = NO_GONE
) -> BoolArray | None:
    """Return bool, (rows of the view,): rows that fail the pod's affinity; None for no row.

    Parameters
    ----------
    counts, pod, view
        The counts, the pod about which they are, and the rows.
    gone
        What pods that left their row had added, by topology key; each row is judged for itself.
    """
    if not counts.near:
        return None
    lacking: BoolArray | None = None
    for key, domains in counts.near.items():
        less = gone.get(key)
        if less is None:
            below = domains.rows_without(view)
        else:
            below = domains.domain_of_rows(view) <= less
        lacking = below if lacking is None else lacking | below
    assert lacking is not None
    if not np.count_nonzero(lacking):
        return lacking
    first = _is_first_of_its_kind(counts, pod, view, gone)
    if first is None:
        return lacking
    # The first pod of a group with affinity to itself: any node that has the labels is allowed.
    missing = np.zeros(len(view), np.bool_)
    for domains in counts.near.values():
        missing |= view.take_rows(domains.column.ids) < 0
    return np.where(first, missing, lacking)


def _is_first_of_its_kind(
    counts: AffinityCounts, pod: PodInfo, view: NodeView, gone: GoneByKey
) -> BoolArray | None:
    """Return bool, (rows of the view,): where no pod is near and the pod is near itself, or None.

    None stands for nowhere.
    """
    elsewhere = [int(np.count_nonzero(domains.by_domain)) for domains in counts.near.values()]
    if max(elsewhere) > 1 or (max(elsewhere) and not gone):
        return None
    if not counts.incoming.is_near(pod.namespace, pod.pod.metadata.labels):
        return None
    first = np.ones(len(view), np.bool_)
    for (key, domains), above_zero in zip(counts.near.items(), elsewhere, strict=True):
        if above_zero:
            here, less = domains.domain_of_rows(view), gone.get(key)
            # Only the row's own domain has pods, and all of them left the row.
            first &= (here != 0) & (here == less) if less is not None else False
    return first


def taken(counts: ByKey, view: NodeView, gone: GoneByKey = NO_GONE) -> BoolArray | None:
    """Return bool, (rows of the view,): rows with a count in any domain; None for no row.

    Parameters
    ----------
    counts, view
        The counts, and the rows.
    gone
        As for `unmet`.
    """
    above: BoolArray | None = None
    for key, domains in counts.items():
        less = gone.get(key)
        if less is None:
            here = domains.rows_above_zero(view)
        else:
            here = domains.domain_of_rows(view) > less
        above = here if above is None else above | here
    return above


def namespace_labels(snapshot: Snapshot, namespace: str) -> Mapping[str, str]:
    """Return the labels of a namespace; none where the namespace is unknown."""
    found = snapshot.listers.namespaces.get(namespace)
    return {} if found is None else found.metadata.labels
