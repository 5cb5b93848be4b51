"""The rejection of some nodes by one plugin, and questions about these nodes to that plugin.

A question is about a changed pod or a changed cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.api.devices import ResourceClaim
from moorage.api.pod import Pod
from moorage.engine.answers import Answers
from moorage.engine.attempt import Attempt
from moorage.engine.filters.asking import ask_filter
from moorage.engine.filters.nominated import nominated_first
from moorage.engine.inquiry import BoolArray, Inquiry
from moorage.framework.capabilities import Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.status import Code, FilterAnswer, Status
from moorage.framework.what_if import GIVEN_BACK
from moorage.snapshot.pod_info import PodInfo

Returned: TypeAlias = Callable[[ResourceClaim], bool] | None


class Rejection(msgspec.Struct, frozen=True, kw_only=True):
    """A plugin's rejection of some rows, to be told in words.

    Parameters
    ----------
    inquiry
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

    inquiry: Inquiry
    plugin: str
    rows: NDArray[np.int64]
    reasons: tuple[str, ...]
    never: bool
    in_question: NDArray[np.int64] | None = None

    @property
    def pod(self) -> Pod:
        """The pod."""
        return self.inquiry.attempt.pod.pod

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
        if not self.never and self.plugin not in self.inquiry.attempt.profile.count_nominated:
            with nominated_placed(self.inquiry, self.rows) as placed:
                if placed:
                    failed_n = failed_n | self._failed(pod, because)
        return failed_n

    def _failed(self, pod: Pod, because: str) -> BoolArray:
        status, answer = ask_again(self.inquiry, self.plugin, self.rows, pod)
        if not status.ok:
            return np.ones(len(self.rows), np.bool_)
        if answer is None:
            return np.zeros(len(self.rows), np.bool_)
        failed_n = answer.failed_n.copy()
        forms = self.inquiry.forms(self.plugin)
        if self.never and forms is not None and Reads.CLUSTER in forms.reads:
            failed_n &= answer.code_n == np.uint8(Code.UNSCHEDULABLE_AND_UNRESOLVABLE)
        if because:
            table = self.inquiry.attempt.profile.handle.reasons
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
        status, answer = ask_again(self.inquiry, self.plugin, self.rows, pod or self.pod)
        if not status.ok:
            return status.reasons
        if answer is None or not answer.failed_n.all():
            return ()
        return self.inquiry.attempt.profile.handle.reasons.reasons(int(answer.reason_n[0]))


def ask_again(
    inquiry: Inquiry, plugin: str, rows: NDArray[np.int64], pod: Pod, *, given_back: Returned = None
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
    at = inquiry.attempt
    state = CycleState()
    if given_back is not None:
        state.write(GIVEN_BACK, given_back)
    attempt = Attempt(at.profile, at.snapshot, state, PodInfo(pod))
    status = Answers(attempt).pre_filter().status
    forms = inquiry.forms(plugin)
    if not status.ok or forms is None or plugin in attempt.state.skip_filter:
        return status, None
    return status, ask_filter(attempt, forms, at.snapshot.rows(rows))


@contextmanager
def nominated_placed(inquiry: Inquiry, rows: NDArray[np.int64]) -> Iterator[bool]:
    """Put the pods that are nominated first on some rows on trial; yields whether there are any."""
    snapshot = inquiry.snapshot
    with snapshot.trial() as trial:
        placed = False
        for row, other in nominated_at(inquiry, rows):
            trial.add_pod(other, row)
            placed = True
        yield placed


def nominated_at(inquiry: Inquiry, rows: NDArray[np.int64]) -> list[tuple[int, PodInfo]]:
    """Return the pods for which a pod has to leave room on some rows, each with its row."""
    snapshot = inquiry.snapshot
    if not snapshot.nominations:
        return []
    among = frozenset(rows.tolist())
    return [
        (row, other)
        for name, nominated in sorted(snapshot.nominations.items())
        if (row := snapshot.row_of(name)) is not None and row in among
        for other in nominated_first(snapshot, inquiry.attempt.pod, nominated)
    ]
