"""The answers of PreFilter and of every Filter about one pod, for every node.

The cycle stops at the first Filter that rejects a node. Here each Filter is asked about every node,
without sampling and without the answers that a cycle has cached.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.api.devices import ResourceClaim
from moorage.api.pod import Pod
from moorage.engine.answers import Answers
from moorage.engine.attempt import Attempt, CycleError
from moorage.engine.filters.asking import ask_filter
from moorage.engine.filters.filter_pass import FilterResults
from moorage.engine.filters.nominated import nominated_first
from moorage.engine.search import Search
from moorage.framework.capabilities import Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.forms import FilterForms
from moorage.framework.profile import Profile
from moorage.framework.runner import PreFilterOutcome
from moorage.framework.status import Code, FilterAnswer, Status
from moorage.framework.subjects import Subject
from moorage.framework.what_if import GIVEN_BACK
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

BoolArray = NDArray[np.bool_]
Returned: TypeAlias = Callable[[ResourceClaim], bool] | None
NEXT_TO_NOMINATED: Final = ", next to nominated pods"
"""The end of a reason where a row takes the pod alone, and not with the pods nominated first."""


class Asked(msgspec.Struct, frozen=True):
    """The answers of all plugins about one pod.

    Parameters
    ----------
    search
        The search over all nodes; it holds the attempt.
    answers
        Filter plugin to its answer about every row, for plugins that reject some row.
    rejects
        Plugin to bool, (nodes,): the rows that it rejects, also at PreFilter and beside nominated
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
        table, found = self.attempt.profile.handle.reasons, dict[str, tuple[str, ...]]()
        for plugin, rejected_n in self.rejects.items():
            if rejected_n[row]:
                answer = self.answers.get(plugin)
                reason = 0 if answer is None else answer.reason_n.item(row)
                found[plugin] = table.reasons(reason) or self._other_reasons(plugin, row)
        return found

    def _other_reasons(self, plugin: str, row: int) -> tuple[str, ...]:
        """Return the reasons of a plugin that passes the row when it is asked alone."""
        restricted = self.pre_filter.restricted_by.get(plugin)
        if restricted is not None and self.snapshot.names[row] not in restricted:
            return self.search.absent_status.reasons or (f"PreFilter of {plugin} left it out",)
        status = self.search.filtered.status(self.attempt.profile, row)
        return tuple(f"{reason}{NEXT_TO_NOMINATED}" for reason in status.reasons)


class Rejection(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin's rejection of some rows, to be told in words.

    Parameters
    ----------
    asked
        All answers.
    plugin
        The plugin.
    rows
        int64: the rows that it rejects; empty where it rejects the pod at PreFilter.
    reasons
        Its reasons on these rows.
    never
        Whether it rejects these rows even when they are empty.
    in_question
        int64: all rows of which one would do, whichever plugins reject them; None for these rows.
    """

    asked: Asked
    plugin: str
    rows: NDArray[np.int64]
    reasons: tuple[str, ...]
    never: bool
    in_question: NDArray[np.int64] | None = None

    @property
    def pod(self) -> Pod:
        """The pod."""
        return self.asked.attempt.pod.pod

    def failed(self, pod: Pod, *, because: str = "") -> BoolArray:
        """Ask the plugin about these rows for a changed pod, also next to nominated pods.

        Parameters
        ----------
        pod
            The changed pod.
        because
            Text of a reason; rows that fail for another reason are left out. "" takes every reason.

        Returns
        -------
        numpy.ndarray
            bool, (rows,): where the plugin rejects the pod. Of a rejection of empty rows, what
            evictions would cure is left out.
        """
        failed_n = self._failed(pod, because)
        if not self.never and self.plugin not in self.asked.attempt.profile.count_nominated:
            with nominated_placed(self.asked, self.rows) as placed:
                if placed:
                    failed_n = failed_n | self._failed(pod, because)
        return failed_n

    def _failed(self, pod: Pod, because: str) -> BoolArray:
        status, answer = ask_again(self.asked, self.plugin, self.rows, pod)
        if not status.ok:
            return np.ones(len(self.rows), np.bool_)
        if answer is None:
            return np.zeros(len(self.rows), np.bool_)
        failed_n = answer.failed_n.copy()
        forms = self.asked.forms(self.plugin)
        if self.never and forms is not None and Reads.CLUSTER in forms.reads:
            failed_n &= answer.code_n == np.uint8(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        if because:
            table = self.asked.attempt.profile.handle.reasons
            about = [
                each
                for each in np.unique(answer.reason_n).tolist()
                if any(because in reason for reason in table.reasons(each))
            ]
            failed_n &= np.isin(answer.reason_n, about)
        return failed_n

    def again(self, pod: Pod | None = None) -> tuple[str, ...]:
        """Ask the plugin about these rows again, for a changed pod or a changed cluster.

        Returns
        -------
        tuple of str
            Its reasons where it still rejects every row; empty where it takes one.
        """
        status, answer = ask_again(self.asked, self.plugin, self.rows, pod or self.pod)
        if not status.ok:
            return status.reasons
        if answer is None or not answer.failed_n.all():
            return ()
        return self.asked.attempt.profile.handle.reasons.reasons(int(answer.reason_n[0]))


def ask_again(
    asked: Asked, plugin: str, rows: NDArray[np.int64], pod: Pod, *, given_back: Returned = None
) -> tuple[Status, FilterAnswer | None]:
    """Ask one plugin about some rows again, for a changed pod or a changed cluster.

    Parameters
    ----------
    given_back
        The claims whose devices count as free (`GIVEN_BACK`).

    Returns
    -------
    tuple
        The status of PreFilter. The plugin's answer about the rows; None where it takes them all,
        or PreFilter rejects the pod.
    """
    at = asked.attempt
    state = CycleState()
    if given_back is not None:
        state.write(GIVEN_BACK, given_back)
    attempt = Attempt(at.profile, at.snapshot, state, PodInfo(pod))
    status = Answers(attempt).pre_filter().status
    forms = asked.forms(plugin)
    if not status.ok or forms is None or plugin in attempt.state.skip_filter:
        return status, None
    return status, ask_filter(attempt, forms, at.snapshot.rows(rows))


@contextmanager
def nominated_placed(asked: Asked, rows: NDArray[np.int64]) -> Iterator[bool]:
    """Put the pods that are nominated first on some rows on trial; yields whether there are any."""
    snapshot = asked.snapshot
    with snapshot.trial() as trial:
        placed = False
        for row, other in nominated_at(asked, rows):
            trial.add_pod(other, row)
            placed = True
        yield placed


def nominated_at(asked: Asked, rows: NDArray[np.int64]) -> list[tuple[int, PodInfo]]:
    """Return the pods for which a pod has to leave room on some rows, each with its row."""
    snapshot = asked.snapshot
    if not snapshot.nominations:
        return []
    among = frozenset(rows.tolist())
    return [
        (row, other)
        for name, nominated in sorted(snapshot.nominations.items())
        if (row := snapshot.row_of(name)) is not None and row in among
        for other in nominated_first(snapshot, asked.attempt.pod, nominated)
    ]


@contextmanager
def in_question(profile: Profile, pod: Pod) -> Iterator[None]:
    """Open a question about a pod: no plugin acts, remembers or draws numbers until it ends."""
    with ExitStack() as opened:
        opened.enter_context(profile.handle.streams.undrawn())
        for declared in profile.capabilities.values():
            if declared.question is not None:
                opened.enter_context(declared.question(PodInfo(pod)))
        yield


def ask(profile: Profile, snapshot: Snapshot, pod: PodInfo) -> Asked:
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
        return Asked(Search(answers, outcome, snapshot.rows([]), FilterResults(0)), {}, {})
    if not outcome.status.ok:
        raise CycleError(outcome.status)
    view = snapshot.all()
    search = Search(answers, outcome, view, answers.filter_view(view))
    return _every_filter(search)


def _every_filter(search: Search) -> Asked:
    attempt = search.answers.attempt
    restricted = search.pre_filter.restricted_by
    found: dict[str, FilterAnswer] = {}
    rejects: dict[str, BoolArray] = {}
    for forms in attempt.profile.filter_forms:
        rejected_n = search.filtered.plugin_n == forms.index
        if forms.name not in attempt.state.skip_filter:
            answer = _about_all(search, forms)
            if answer is not None:
                found[forms.name] = answer
                rejected_n |= answer.failed_n
        if forms.name in restricted:
            rejected_n |= _outside(attempt.snapshot, restricted[forms.name])
        if rejected_n.any():
            rejects[forms.name] = rejected_n
    for plugin, names in restricted.items():  # plugins with PreFilter and without Filter
        outside_n = _outside(attempt.snapshot, names)
        if plugin not in rejects and outside_n.any():
            rejects[plugin] = outside_n
    return Asked(search, found, rejects)


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
