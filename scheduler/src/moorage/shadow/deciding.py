"""Decides about a pod beside the node it really got: whether that node is as good, and why not.

The cycle of the profile decides, as in a scheduler. Where it takes another node, the search is made
once more; the scores of both nodes, or the rejection of the real one, are read from it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from moorage.engine.attempt import CycleError
from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision
from moorage.engine.sampling import ALL
from moorage.engine.scoring import run_scores
from moorage.engine.search import Search
from moorage.engine.select_node import TiedRows
from moorage.shadow.comparison import PluginScores
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

_BROKEN = "the configuration's decision failed"


class Preference:
    """A tie-break that takes a wanted node where it is among the best ones.

    Attributes
    ----------
    row
        The row of the wanted node; -1 for none, then the first of the best rows is taken.
    """

    def __init__(self) -> None:
        self.row = -1

    def __call__(self, rows: TiedRows, names: Sequence[str]) -> int:
        """Return the wanted row if it is among `rows`, which are ascending."""
        del names
        return self.row if self.row in rows else int(rows[0])


class Why(msgspec.Struct, frozen=True, kw_only=True):
    """The reason against the real node; the fields are those of `Comparison`."""

    reason: str
    plugin: str = ""
    scores: tuple[PluginScores, ...] = ()
    rejections: Mapping[str, tuple[str, ...]] = {}


class Decider:
    """Decides about one pod at a time over a cluster; nothing is assumed and nothing kept.

    Parameters
    ----------
    cycles
        The cycles of the profiles, by schedulerName; their tie-break is `preference`.
    snapshot
        The cluster.
    preference
        The tie-break.
    """

    def __init__(
        self, cycles: Mapping[str, Cycle], snapshot: Snapshot, preference: Preference
    ) -> None:
        self._cycles = cycles
        self._snapshot = snapshot
        self._preference = preference

    def decide(self, pod: PodInfo, node: str = "") -> Decision | str:
        """Return the decision about a pod; of several best nodes `node` is taken.

        Returns
        -------
        Decision or str
            The failure, where a plugin broke so that there is no decision.
        """
        cycle = self._cycle(pod)
        row = self._snapshot.row_of(node) if node else None
        self._preference.row = -1 if row is None else row
        try:
            return cycle.decide(pod)
        except Exception as problem:  # a plugin from outside may raise anything
            return f"{_BROKEN}: {type(problem).__name__}: {problem}"
        finally:
            self._preference.row = -1

    def takes(self, pod: PodInfo, node: str) -> bool:
        """Whether the configuration takes a node for a pod, at the latest by a draw."""
        found = self.decide(pod, node)
        return not isinstance(found, str) and found.node_name == node

    def may_take(self, pod: PodInfo, node: str) -> bool:
        """Whether the configuration takes a node, wherever the search begins."""
        return self.takes(pod, node) or self.takes_from_elsewhere(pod, node)

    def takes_from_elsewhere(self, pod: PodInfo, node: str) -> bool:
        """Whether a node is taken where the search for a part of the nodes starts elsewhere.

        A profile that scores only a part of the nodes looks at them in an order; which node is the
        first depends on all searches before. Only the start after the nearest better node, and the
        start at the node itself, can make a difference.
        """
        cycle, row = self._cycle(pod), self._snapshot.row_of(node)
        if cycle.profile.percentage_of_nodes_to_score >= ALL or row is None:
            return False
        before = cycle.rotation.start
        try:
            for start in self._starts(cycle, pod, row):
                cycle.rotation.start = start
                if self.takes(pod, node):
                    return True
        except CycleError:
            return False
        finally:
            cycle.rotation.start = before
        return False

    def _starts(self, cycle: Cycle, pod: PodInfo, row: int) -> list[int]:
        """Return the starts of a search that may take a row, as positions in the order of nodes."""
        search = self._whole_search(cycle, pod)
        rows = search.answers.feasible(search.view, search.filtered)
        totals = dict(zip(rows.tolist(), cycle.totals(search, rows).tolist(), strict=True))
        if row not in totals:
            return []
        order = self._snapshot.search_order().tolist()
        own = order.index(row)
        found = [own]
        for back in range(1, len(order)):
            position = (own - back) % len(order)
            if totals.get(order[position], -1) > totals[row]:
                break
            found.append(position)
        return [found[-1], own] if found[-1] != own else [own]

    def why_not(self, pod: PodInfo, real: str, decision: Decision) -> Why:
        """Return why the configuration takes another node, or none."""
        cycle, row = self._cycle(pod), self._snapshot.row_of(real)
        assert row is not None, f"node {real} is known"
        start = cycle.rotation.start
        try:
            return self._why_not(cycle, pod, row, decision)
        except CycleError as broken:
            return Why(reason=f"{_BROKEN}: {broken.status.message}", plugin=broken.status.plugin)
        finally:
            cycle.rotation.start = start

    def _why_not(self, cycle: Cycle, pod: PodInfo, row: int, decision: Decision) -> Why:
        search = self._whole_search(cycle, pod)
        real, shadow = self._snapshot.names[row], decision.node_name
        rejected = self._rejection(search, row)
        if rejected:
            plugin, reasons = next(iter(rejected.items()))
            told = f"{plugin} rejects {real}: {'; '.join(reasons)}"
            return Why(reason=told, plugin=plugin, rejections=rejected)
        if not shadow:
            return Why(reason=decision.message or "no node takes it", plugin=decision.status.plugin)
        if pod.pod.status.nominated_node_name == shadow:
            return Why(reason=f"the pod is nominated for {shadow}, and that node takes it")
        scores = self._scores(search, row, shadow)
        if not scores:
            return Why(reason=f"{shadow} is the only node that takes it")
        real_total, total = sum(each.real for each in scores), sum(each.shadow for each in scores)
        best = max(scores, key=lambda each: each.shadow - each.real)
        told = (
            f"{best.plugin} scores {shadow} {best.shadow - best.real} higher than {real} "
            f"(totals {total} and {real_total})"
        )
        return Why(reason=told, plugin=best.plugin, scores=scores)

    def _whole_search(self, cycle: Cycle, pod: PodInfo) -> Search:
        """Search every node, also where the profile looks at a part of them."""
        search = cycle.search(cycle.begin(pod), shortcut=False)
        outcome = search.pre_filter
        if cycle.profile.percentage_of_nodes_to_score >= ALL or outcome.node_names is not None:
            return search
        if outcome.status.rejected:
            return search
        view = self._snapshot.all()
        filtered = search.answers.filter_view(view)
        return msgspec.structs.replace(search, view=view, filtered=filtered, known=None)

    def _rejection(self, search: Search, row: int) -> dict[str, tuple[str, ...]]:
        """Return the plugin that rejects a row, with its reasons; empty where none does."""
        outcome, profile = search.pre_filter, search.attempt.profile
        if outcome.status.rejected:
            return {outcome.status.plugin: outcome.status.reasons}
        name = self._snapshot.names[row]
        for plugin, names in outcome.restricted_by.items():
            if name not in names:
                return {plugin: search.absent_status.reasons}
        status = search.answers.filter_row(row).status(profile, 0)
        return {} if status.ok else {status.plugin: status.reasons}

    def _scores(self, search: Search, row: int, shadow: str) -> tuple[PluginScores, ...]:
        """Return the weighted scores of both nodes; empty where nothing is scored."""
        rows = search.answers.feasible(search.view, search.filtered)
        other = self._snapshot.row_of(shadow)
        if len(rows) < 2 or other is None:
            return ()
        found = run_scores(search.attempt, self._snapshot.rows(rows))
        real_at, shadow_at = int(rows.searchsorted(row)), int(rows.searchsorted(other))
        return tuple(
            PluginScores(
                name,
                each.weight * each.normalized_n.item(real_at),
                each.weight * each.normalized_n.item(shadow_at),
            )
            for name, each in found.plugins.items()
        )

    def _cycle(self, pod: PodInfo) -> Cycle:
        return self._cycles[pod.pod.spec.scheduler_name]
