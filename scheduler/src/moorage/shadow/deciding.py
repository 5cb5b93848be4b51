"""Decides about a pod next to the node it really got: whether that node is as good, and why not.

The cycle of the profile decides, as in a scheduler. Where it takes another node, an inquiry gives
the scores of both nodes, or the rejection of the real one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from moorage.engine.attempt import CycleError
from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision
from moorage.engine.inquiry import Inquiry, inquire
from moorage.engine.sampling import ALL
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
        inquiry = inquire(cycle.profile, self._snapshot, pod)
        rows = inquiry.feasible
        scores = inquiry.scores(rows)
        if scores is None or row not in rows:
            return []
        totals = dict(zip(rows.tolist(), scores.total_n.tolist(), strict=True))
        order = self._snapshot.search_order().tolist()
        own = order.index(row)
        positions = [own]
        for back in range(1, len(order)):
            position = (own - back) % len(order)
            if totals.get(order[position], -1) > totals[row]:
                break
            positions.append(position)
        return [positions[-1], own] if positions[-1] != own else [own]

    def why_not(self, pod: PodInfo, real: str, decision: Decision) -> Why:
        """Return why the configuration takes another node, or none."""
        row = self._snapshot.row_of(real)
        assert row is not None, f"node {real} is known"
        try:
            inquiry = inquire(self._cycle(pod).profile, self._snapshot, pod)
            return self._why_not(inquiry, row, decision)
        except CycleError as broken:
            return Why(reason=f"{_BROKEN}: {broken.status.message}", plugin=broken.status.plugin)

    def _why_not(self, inquiry: Inquiry, row: int, decision: Decision) -> Why:
        pod, real, shadow = inquiry.attempt.pod, self._snapshot.names[row], decision.node_name
        status = inquiry.status_at(row)
        if not status.ok:
            plugin, reasons = status.plugin, status.reasons
            reason = f"{plugin} rejects {real}: {'; '.join(reasons)}"
            return Why(reason=reason, plugin=plugin, rejections={plugin: reasons})
        if not shadow:
            return Why(reason=decision.message or "no node takes it", plugin=decision.status.plugin)
        if pod.pod.status.nominated_node_name == shadow:
            return Why(reason=f"the pod is nominated for {shadow}, and that node takes it")
        scores = self._scores(inquiry, row, shadow)
        if not scores:
            return Why(reason=f"{shadow} is the only node that takes it")
        real_total, total = sum(each.real for each in scores), sum(each.shadow for each in scores)
        best = max(scores, key=lambda each: each.shadow - each.real)
        reason = (
            f"{best.plugin} scores {shadow} {best.shadow - best.real} higher than {real} "
            f"(totals {total} and {real_total})"
        )
        return Why(reason=reason, plugin=best.plugin, scores=scores)

    def _scores(self, inquiry: Inquiry, row: int, shadow: str) -> tuple[PluginScores, ...]:
        """Return the weighted scores of both nodes; empty where nothing is scored."""
        rows, other = inquiry.feasible, self._snapshot.row_of(shadow)
        scores = inquiry.scores(rows) if len(rows) > 1 else None
        if scores is None or other is None:
            return ()
        real_at, shadow_at = int(rows.searchsorted(row)), int(rows.searchsorted(other))
        return tuple(
            PluginScores(
                name,
                each.weight * each.normalized_n.item(real_at),
                each.weight * each.normalized_n.item(shadow_at),
            )
            for name, each in scores.plugins.items()
        )

    def _cycle(self, pod: PodInfo) -> Cycle:
        return self._cycles[pod.pod.spec.scheduler_name]
