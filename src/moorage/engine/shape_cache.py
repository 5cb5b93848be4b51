"""Reuses plugins' answers for replicas; it may never change a decision.

For each shape (the parts of a pod that reusable plugins read) an entry keeps what those plugins
answered for every row, and brings it up to date from the rows that changed since. A plugin whose
answers depend on more than a row (`Reads.CLUSTER`) is asked afresh every time. Placing one replica
after another thus costs one changed row, not a pass over the cluster.

Entries die when rows were added, removed or moved, when a plugin's epoch changed, and least
recently used first when they exceed their byte budget.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from moorage.engine.filter_pass import PASSED, FilterPass
from moorage.engine.filtering import CycleError, ask_filters, ask_into
from moorage.engine.filtering import raise_first_error as _raise_first_error
from moorage.engine.known_pre_filters import KnownPreFilters
from moorage.engine.one_row import OneRow
from moorage.engine.scoring import ask_score, check_range
from moorage.engine.shape_entry import Beside, Entry, Scores, shape_key
from moorage.framework.capabilities import Reads
from moorage.framework.containment import contained
from moorage.framework.cycle_state import CycleState
from moorage.framework.forms import ScoreForms
from moorage.framework.meter import PRE_SCORE
from moorage.framework.points import ScoreArray
from moorage.framework.profile import Profile
from moorage.framework.status import Code, error
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import NODE_NAME, Part
from moorage.snapshot.snapshot import Snapshot

DEFAULT_BUDGET_BYTES = 256 * 1024 * 1024  # about 500 shapes at 5000 nodes; a guess

# Rows that may have changed since an entry was brought up to date, with one of them looked for
# among them each time; a guess.
_BEHIND_MOST = 128

# Priorities for which a shape keeps the verdict beside nominated pods; a guess.
_PRIORITIES_MOST = 4

Shape = tuple[tuple[Part[Any], ...], tuple[int, ...]]
"""The parts of a pod that reusable plugins read, and their ids."""


class ShapeCache:
    """Entries by shape for one profile.

    Parameters
    ----------
    profile
        Whose plugins are asked.
    snapshot
        Whose rows are answered for.
    budget_bytes
        How much memory the entries may take together.

    Attributes
    ----------
    pre_filters
        Runs PreFilter with what entries know.
    """

    def __init__(
        self, profile: Profile, snapshot: Snapshot, *, budget_bytes: int = DEFAULT_BUDGET_BYTES
    ) -> None:
        self._profile = profile
        self._snapshot = snapshot
        self._budget = budget_bytes
        self._entries: OrderedDict[tuple[int, ...], Entry] = OrderedDict()
        self._sizes: dict[tuple[int, ...], int] = {}
        self._total = 0
        self._kinds = profile.shape_kinds
        # Of the parts beside the spec's own, the name of a node is nearly always empty.
        self._within_spec = all(kind.within_spec or kind is NODE_NAME for kind in self._kinds)
        self._fresh = fresh = profile.asked_afresh
        self._epochs: tuple[Callable[[Snapshot], int], ...] = tuple(
            each.epoch
            for name, each in profile.capabilities.items()
            if name not in fresh and each.epoch is not None
        )
        filters = profile.filter_forms
        self._by_node = [each.index for each in filters if each.by_node]
        self._by_pods = [each.index for each in filters if each.reused and not each.by_node]
        self.pre_filters = KnownPreFilters(profile, snapshot, self._fresh)
        self._one_row = OneRow(profile, self._by_pods)
        self._fresh_filters = [each.index for each in filters if not each.reused]
        self._fresh_names = frozenset(each.name for each in filters if not each.reused)
        self.hits = 0
        self.misses = 0

    @property
    def fresh_plugins(self) -> frozenset[str]:
        """Names of the plugins that are asked afresh for every pod."""
        return self._fresh

    @property
    def nbytes(self) -> int:
        """Memory of all entries, bytes."""
        return self._total

    def entry(self, pod: PodInfo) -> Entry:
        """Return the entry of a pod's shape; to be read after `catch_up`, but for `passes_at`."""
        parts, key = self._shape_of(pod)
        epochs = tuple([epoch(self._snapshot) for epoch in self._epochs])
        structure = self._snapshot.table.columns.structure
        found = self._entries.get(key)
        if found is not None and found.structure == structure and found.epochs == epochs:
            self.hits += 1
            self._entries.move_to_end(key)
            return found
        self.misses += 1
        made = self._entries[key] = Entry(parts, self._snapshot, epochs)
        self._entries.move_to_end(key)
        self.settle(made)  # also shapes that PreFilter stops or restricts must not pile up
        return made

    def _shape_of(self, pod: PodInfo) -> Shape:
        if not self._within_spec or pod.pod.spec.node_name:
            parts = tuple([pod.part(kind) for kind in self._kinds])
            return parts, shape_key(parts)
        known: Shape | None = pod.spec_memo.get(self)
        if known is None:
            parts = tuple([pod.part(kind) for kind in self._kinds])
            known = pod.spec_memo[self] = parts, shape_key(parts)
        return known

    def settle(self, entry: Entry) -> None:
        """Count an entry's memory and drop the least recently used ones over budget."""
        size = entry.nbytes
        self._total += size - self._sizes.get(entry.key, 0)
        self._sizes[entry.key] = size
        while self._total > self._budget and len(self._entries) > 1:
            oldest, _ = self._entries.popitem(last=False)
            self._total -= self._sizes.pop(oldest, 0)

    # -- Filter --------------------------------------------------------------------------------

    def filter_all(self, entry: Entry, state: CycleState, pod: PodInfo) -> FilterPass:
        """Return the verdict on every row; the caller may change it only after a copy.

        Raises
        ------
        CycleError
            As `run_filters`.
        """
        if entry.verdict is None:
            kept = self._ask_all(entry, state, pod)
        else:
            kept = entry.verdict
        if self._asks(state):
            return self._with_fresh(kept, state, pod)
        if kept is not entry.verdict:  # it was not kept, because something broke
            _raise_first_error(self._profile, kept)
        return kept

    def verdict_at(self, entry: Entry, state: CycleState, row: int) -> FilterPass | None:
        """Return a copy of the verdict on one row; None where it takes asking plugins afresh."""
        verdict = entry.verdict
        return None if verdict is None or self._asks(state) else verdict.at(np.array([row]))

    def passes_at(self, entry: Entry, state: CycleState, pod: PodInfo, row: int) -> bool:
        """Whether one row is known to pass, or found out about it alone; False is always right.

        The entry need not be up to date: a pod that gets the node it is nominated to concerns no
        other row, and what is not judged now is judged once by whoever looks at all of them,
        however often it changes until then.
        """
        verdict, by_node, log = entry.verdict, entry.by_node, self._snapshot.table.pod_log
        if verdict is None or by_node is None or self._asks(state):
            return False
        if entry.node_position != self._snapshot.table.node_log.position:
            return False
        if log.position - entry.pod_position > _BEHIND_MOST:
            return False
        if not log.may_have_changed(row, entry.pod_position):
            return verdict.plugin_n.item(row) == PASSED
        return by_node.plugin_n.item(row) == PASSED and self._one_row.passes(entry, pod, row)

    def _asks(self, state: CycleState) -> bool:
        """Whether any Filter has to be asked afresh."""
        return not self._fresh_names <= state.skip_filter

    def _ask_all(self, entry: Entry, state: CycleState, pod: PodInfo) -> FilterPass:
        view = self._snapshot.all()
        by_node = ask_filters(self._profile, state, pod, view, only=self._by_node)
        by_pods = ask_filters(self._profile, state, pod, view, only=self._by_pods)
        verdict = by_node.copy()
        verdict.merge(by_pods)
        if not verdict.is_broken:  # an error may be gone the next time, so it is not kept
            entry.by_node, entry.by_pods, entry.verdict = by_node, by_pods, verdict
            entry.feasible = None
            self.settle(entry)
        return verdict

    def _with_fresh(self, kept: FilterPass, state: CycleState, pod: PodInfo) -> FilterPass:
        verdict, view = kept.copy(), self._snapshot.all()
        for index in self._fresh_filters:
            if self._profile.filters[index].name not in state.skip_filter:
                ask_into(verdict, self._profile, index, state, pod, view=view)
        _raise_first_error(self._profile, verdict)
        return verdict

    def keep_beside(self, entry: Entry, priority: int, beside: Beside) -> None:
        """Keep the verdict that counts nominated pods in, for replicas of this priority."""
        if priority not in entry.beside and len(entry.beside) >= _PRIORITIES_MOST:
            entry.beside.clear()
        entry.beside[priority] = beside
        self.settle(entry)

    # -- Score ---------------------------------------------------------------------------------

    def scores_all(self, entry: Entry, state: CycleState, pod: PodInfo) -> Scores:
        """Return the reusable plugins' raw scores for every row.

        Raises
        ------
        CycleError
            A plugin failed, or a raw score that is final is out of range.
        """
        if entry.scores is not None:
            state.absorb(entry.state)
            return entry.scores
        entry.asks_too_much = True
        entry.state.metered_like(state)
        made = Scores(self._snapshot.num_nodes)
        made.skipped = self._pre_score(entry, pod)
        state.absorb(entry.state)
        view = self._snapshot.all()
        for each in self._reused_scores(made):
            raw_n = ask_score(each.plugin, state, pod, view)
            made.raw[each.name] = raw_n
            self._sum_up(made, each, raw_n)
        entry.scores, entry.asks_too_much = made, False
        self.settle(entry)
        return made

    def _sum_up(self, scores: Scores, forms: ScoreForms, raw_n: ScoreArray) -> None:
        if forms.normalizer is None:
            check_range(forms.plugin, raw_n)
            scores.fixed_n += forms.weight * raw_n
        elif len(raw_n) and raw_n.min() == raw_n.max():
            scores.flat[forms.name] = int(raw_n[0])

    def _pre_score(self, entry: Entry, pod: PodInfo) -> frozenset[str]:
        skipped = set()
        for plugin in self._profile.pre_scores:
            if plugin.name in self._fresh:
                continue
            began_ns = entry.state.begins()
            try:
                status = plugin.pre_score(entry.state, pod, self._snapshot.all())
            except Exception as problem:
                status = contained(plugin.name, PRE_SCORE, problem)
            entry.state.ended(plugin.name, PRE_SCORE, status.code, since_ns=began_ns)
            if status.code is Code.SKIP:
                skipped.add(plugin.name)
            elif not status.ok:
                text = f'running PreScore plugin "{plugin.name}": {status.message}'
                raise CycleError(error(text))
        return frozenset(skipped)

    def _reused_scores(self, scores: Scores) -> list[ScoreForms]:
        return [
            each
            for each in self._profile.score_forms
            if each.reused and each.name not in scores.skipped
        ]

    # -- keeping up ----------------------------------------------------------------------------

    def catch_up(self, entry: Entry, pod: PodInfo) -> None:
        """Bring an entry up to date with every changed row."""
        node_log, pod_log = self._snapshot.table.node_log, self._snapshot.table.pod_log
        at_nodes, at_pods = node_log.position, pod_log.position
        if entry.pod_position == at_pods and entry.node_position == at_nodes:
            return
        entry.state.meter = None  # keeping answers up to date is no part of an extension point
        nodes = () if entry.node_position == at_nodes else node_log.since(entry.node_position)
        pods = pod_log.since(entry.pod_position)
        if nodes is None or pods is None:
            self._forget(entry)
        elif nodes or not self._one_row.follow(entry, pod, pods):
            node_rows, all_rows = sorted(nodes), sorted({*nodes, *pods})
            if len(all_rows) * 4 > self._snapshot.num_nodes + 4:
                self._forget(entry)  # a full pass costs less than that many single rows
            else:
                self._refresh_rows(entry, pod, node_rows, all_rows)
        entry.node_position, entry.pod_position = at_nodes, at_pods

    def _forget(self, entry: Entry) -> None:
        """Have every row asked about again; PreFilter has not looked at rows."""
        self.misses += 1
        entry.forget_rows()
        self.settle(entry)

    def _refresh_rows(
        self, entry: Entry, pod: PodInfo, node_rows: list[int], all_rows: list[int]
    ) -> None:
        at = np.array(all_rows, np.int64)
        if entry.verdict is not None:
            assert entry.by_node is not None
            assert entry.by_pods is not None
            state = self._state_for_refresh(entry)
            if node_rows:
                rows = np.array(node_rows, np.int64)
                self._refilter(entry.by_node, self._by_node, state, pod, rows)
            self._refilter(entry.by_pods, self._by_pods, state, pod, at)
            merged = entry.by_node.at(at)
            merged.merge(entry.by_pods.at(at))
            if (merged.passed != (entry.verdict.plugin_n[at] == PASSED)).any():
                entry.feasible = None
            entry.verdict.put(at, merged)
            if merged.is_broken:
                entry.verdict = entry.feasible = None
        if entry.scores is not None:
            try:
                self._rescore(entry.scores, entry.state, pod, at, node_rows=node_rows)
            except CycleError:  # perhaps over a row that is not feasible: ask again when it is
                entry.scores = None

    def _state_for_refresh(self, entry: Entry) -> CycleState:
        state = entry.state.copy()
        state.skip_filter = entry.skipping
        return state

    def _refilter(
        self,
        verdict: FilterPass,
        only: Sequence[int],
        state: CycleState,
        pod: PodInfo,
        rows: NDArray[np.int64],
    ) -> None:
        view = self._snapshot.rows(rows)
        verdict.put(rows, ask_filters(self._profile, state, pod, view, only=only))

    def _rescore(
        self,
        scores: Scores,
        state: CycleState,
        pod: PodInfo,
        rows: NDArray[np.int64],
        *,
        node_rows: list[int],
    ) -> None:
        view = self._snapshot.rows(rows)
        for each in self._reused_scores(scores):
            if each.reads == Reads.NODE and not node_rows:
                continue
            raw_n = scores.raw[each.name]
            new = ask_score(each.plugin, state, pod, view)
            if each.normalizer is None:
                check_range(each.plugin, new)
                scores.fixed_n[rows] += each.weight * (new - raw_n[rows])
            elif each.name in scores.flat and (new != scores.flat[each.name]).any():
                del scores.flat[each.name]
                scores.flat_total = None
            raw_n[rows] = new
