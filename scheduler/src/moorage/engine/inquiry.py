"""An inquiry: what PreFilter and every Filter say about one pod, for every node.

The cycle stops at the first Filter that rejects a node, and looks at a part of the nodes if it is
told to. Here each Filter is asked about every node, and no cached answer is used. What explains a
decision, compares it with another scheduler's, or checks it against a recording is based on this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.engine.answers import Answers
from moorage.engine.attempt import Attempt, CycleError
from moorage.engine.filters.asking import ask_filter
from moorage.engine.filters.filter_results import FilterResults
from moorage.engine.scoring import ScoreTable, run_scores
from moorage.engine.search import Search
from moorage.framework.cycle_state import CycleState
from moorage.framework.forms import FilterForms
from moorage.framework.points import PreFilterOutcome
from moorage.framework.profile import Profile
from moorage.framework.status import FilterAnswer, Status
from moorage.framework.subjects import Subject
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

BoolArray = NDArray[np.bool_]
Rows = NDArray[np.int64]
NEXT_TO_NOMINATED: Final = ", next to nominated pods"
"""The end of a reason where a row takes the pod alone, and not with the pods nominated first."""


class Inquiry(msgspec.Struct, frozen=True):
    """The answers of all plugins about one pod.

    Parameters
    ----------
    search
        The search over all nodes; it holds the attempt.
    answers
        Filter plugin to its answer about every row, for plugins that reject some row.
    rejects
        Plugin to bool, (nodes,): the rows that it rejects, also at PreFilter and next to nominated
        pods. In the order of the profile.
    """

    search: Search
    answers: Mapping[str, FilterAnswer]
    rejects: Mapping[str, BoolArray]

    @property
    def attempt(self) -> Attempt:
        """The attempt."""
        return self.search.answers.attempt

    @property
    def snapshot(self) -> Snapshot:
        """The cluster."""
        return self.attempt.snapshot

    @property
    def pre_filter(self) -> PreFilterOutcome:
        """The outcome of PreFilter; where it is a rejection, no Filter was asked."""
        return self.search.pre_filter

    @property
    def fits_n(self) -> BoolArray:
        """bool, (nodes,): which rows take the pod."""
        if self.pre_filter.status.rejected:
            return np.zeros(self.snapshot.num_nodes, np.bool_)
        fits_n = np.ones(self.snapshot.num_nodes, np.bool_)
        for rejected_n in self.rejects.values():
            fits_n &= ~rejected_n
        return fits_n

    @property
    def feasible(self) -> Rows:
        """int64: the rows that take the pod, ascending."""
        return np.flatnonzero(self.fits_n)

    def scores(self, rows: Rows) -> ScoreTable | None:
        """Return all scores of some rows that take the pod, in this order; None for no row.

        Raises
        ------
        CycleError
            A Score plugin failed.
        """
        return run_scores(self.attempt, self.snapshot.rows(rows)) if len(rows) else None

    def status_at(self, row: int) -> Status:
        """Return what an attempt finds about a row: Success, or the first plugin's rejection."""
        if self.pre_filter.status.rejected:
            return self.pre_filter.status
        for plugin, names in self.pre_filter.restricted_by.items():
            if self.snapshot.names[row] not in names:
                return self.search.absent_status.by(plugin)
        return self.search.filtered.status(self.attempt.profile, row)

    def subject(self, plugin: str) -> Subject | None:
        """Return the subject of a plugin's rejections; None where the plugin does not name one."""
        declared = self.attempt.profile.capabilities.get(plugin)
        return None if declared is None else declared.rejects_about

    def rejects_about(self, subject: Subject) -> BoolArray:
        """Return bool, (nodes,): the rows that some plugin rejects because of a subject."""
        rejected_n = np.zeros(self.snapshot.num_nodes, np.bool_)
        for plugin, each_n in self.rejects.items():
            if self.subject(plugin) is subject:
                rejected_n |= each_n
        return rejected_n

    def forms(self, plugin: str) -> FilterForms | None:
        """Return the forms of a Filter plugin; None for a plugin without Filter."""
        filters = self.attempt.profile.filter_forms
        return next((each for each in filters if each.name == plugin), None)

    def reasons_at(self, row: int) -> dict[str, tuple[str, ...]]:
        """Return the reasons of each plugin that rejects a row."""
        table, reasons = self.attempt.profile.handle.reasons, dict[str, tuple[str, ...]]()
        for plugin, rejected_n in self.rejects.items():
            if rejected_n[row]:
                answer = self.answers.get(plugin)
                reason = 0 if answer is None else answer.reason_n.item(row)
                reasons[plugin] = table.reasons(reason) or self._other_reasons(plugin, row)
        return reasons

    def _other_reasons(self, plugin: str, row: int) -> tuple[str, ...]:
        """Return the reasons of a plugin that passes the row when it is asked alone."""
        restricted = self.pre_filter.restricted_by.get(plugin)
        if restricted is not None and self.snapshot.names[row] not in restricted:
            return self.search.absent_status.reasons or (f"PreFilter of {plugin} left it out",)
        status = self.search.filtered.status(self.attempt.profile, row)
        return tuple(f"{reason}{NEXT_TO_NOMINATED}" for reason in status.reasons)


@contextmanager
def in_question(profile: Profile, pod: Pod) -> Iterator[None]:
    """Open a question about a pod: no plugin acts, remembers or draws numbers until it ends."""
    with ExitStack() as opened:
        opened.enter_context(profile.handle.streams.undrawn())
        opened.enter_context(profile.handle.effects.withheld())
        for declared in profile.capabilities.values():
            if declared.question is not None:
                opened.enter_context(declared.question(PodInfo(pod)))
        yield


def inquire(profile: Profile, snapshot: Snapshot, pod: PodInfo) -> Inquiry:
    """Ask every plugin about a pod for every node.

    Raises
    ------
    CycleError
        A plugin failed.
    """
    attempt = Attempt(profile, snapshot, CycleState(), pod)
    answers = Answers(attempt)
    outcome = answers.pre_filter()
    if outcome.status.rejected:
        return Inquiry(Search(answers, outcome, snapshot.rows([]), FilterResults(0)), {}, {})
    if not outcome.status.ok:
        raise CycleError(outcome.status)
    view = snapshot.all()
    search = Search(answers, outcome, view, answers.filter_view(view))
    return _every_filter(search)


def _every_filter(search: Search) -> Inquiry:
    attempt = search.answers.attempt
    restricted = search.pre_filter.restricted_by
    answers: dict[str, FilterAnswer] = {}
    rejects: dict[str, BoolArray] = {}
    for forms in attempt.profile.filter_forms:
        rejected_n = search.filtered.plugin_n == forms.index
        if forms.name not in attempt.state.skip_filter:
            answer = _about_all(search, forms)
            if answer is not None:
                answers[forms.name] = answer
                rejected_n |= answer.failed_n
        if forms.name in restricted:
            rejected_n |= _outside(attempt.snapshot, restricted[forms.name])
        if rejected_n.any():
            rejects[forms.name] = rejected_n
    for plugin, names in restricted.items():  # plugins with PreFilter and without Filter
        outside_n = _outside(attempt.snapshot, names)
        if plugin not in rejects and outside_n.any():
            rejects[plugin] = outside_n
    return Inquiry(search, answers, rejects)


def _about_all(search: Search, forms: FilterForms) -> FilterAnswer | None:
    """Ask a plugin about every row; None where it takes them all.

    A plugin that costs a call for each row is asked only about rows that the search did not ask it
    about: those that an earlier plugin failed.
    """
    attempt, filtered = search.answers.attempt, search.filtered
    if not forms.row_by_row or len(filtered.plugin_n) != len(search.view):
        return ask_filter(attempt, forms, search.view)
    own_n = filtered.plugin_n == forms.index
    code_n, reason_n = filtered.code_n * own_n, filtered.reason_n * own_n
    unasked = np.flatnonzero(filtered.plugin_n < forms.index)
    answer = ask_filter(attempt, forms, attempt.snapshot.rows(unasked)) if len(unasked) else None
    if answer is not None:
        code_n[unasked], reason_n[unasked] = answer.code_n, answer.reason_n
    return FilterAnswer(code_n, reason_n) if code_n.any() else None


def _outside(snapshot: Snapshot, names: frozenset[str]) -> BoolArray:
    outside_n = np.ones(snapshot.num_nodes, np.bool_)
    rows = [snapshot.row_of(name) for name in names]
    outside_n[[row for row in rows if row is not None]] = False
    return outside_n
