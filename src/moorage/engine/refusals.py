"""Remembers why a search found no node, for the next pod of the same shape; between two changes.

A group that does not fit has dozens of members for which there is no node, and each would have
every row's reasons counted and every node tried out by preemption, to hear what the one before
heard. As a `ShapeCache`, it may never change a decision.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from moorage.engine.search import Search
from moorage.engine.shape_entry import Entry
from moorage.framework.cycle_state import CycleState
from moorage.framework.diagnosis import Diagnosis
from moorage.framework.preemption import EXPLAIN
from moorage.framework.profile import Profile
from moorage.framework.runner import PostFilterOutcome
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot


class Refusal(NamedTuple):
    """Why no row passed, and what PostFilter said to it; None where it was not asked."""

    entry: Entry
    diagnosis: Diagnosis
    after: PostFilterOutcome | None


class Refusals:
    """The refusals since a row changed last.

    Parameters
    ----------
    profile
        Whose PostFilter plugins answer; one that does not declare `rejects_by_shape` is asked
        for every pod anew.
    snapshot
        The cluster.
    """

    def __init__(self, profile: Profile, snapshot: Snapshot) -> None:
        self._profile = profile
        self._snapshot = snapshot
        self._by_shape = all(
            profile.capabilities[plugin.name].rejects_by_shape for plugin in profile.post_filters
        )
        self._kept: dict[Hashable, Refusal] = {}
        self._position = (-1, -1)

    def alike(
        self, pod: PodInfo, state: CycleState, search: Search, *, post_filter: bool
    ) -> Hashable | None:
        """Return what pods have in common that are refused alike; None for one that is by itself.

        Kept answers count where nothing but the shape decided: no plugin that sees more than the
        sums of a row was asked, and nobody is nominated.
        """
        entry, explained = search.entry, state.find(EXPLAIN)
        if (
            entry is None
            or search.verdict is not entry.verdict
            or (post_filter and not self._by_shape)
            or self._snapshot.nominations
            or pod.pod.status.nominated_node_name
            or explained
            or self._profile.filters_by_sums(state.skip_filter) is None
        ):
            return None
        groups = self._snapshot.groups
        group = groups.key_of(pod.pod)
        return (
            entry.key,
            search.pre_filter.plugins,
            post_filter,
            pod.priority,
            pod.pod.spec.preemption_policy,
            group and (group, groups.source.terms_of(group)),
        )

    def find(self, alike: Hashable, entry: Entry | None) -> Refusal | None:
        """Return what a pod like this was told, if no row has changed since."""
        table = self._snapshot.table
        position = (table.node_log.position, table.pod_log.position)
        if position != self._position:
            self._kept.clear()
            self._position = position
            return None
        found = self._kept.get(alike)
        return found if found is not None and found.entry is entry else None

    def keep(self, alike: Hashable, refusal: Refusal) -> None:
        """Remember a refusal; not one that names a node, for that is a way and no refusal."""
        result = None if refusal.after is None else refusal.after.result
        if result is None or not (result.nominated_node or result.victims):
            self._kept[alike] = refusal
