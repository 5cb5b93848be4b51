"""The answers of plugins: a `Status`, and its array form `FilterAnswer`.

A code is documented by its consequence (where the pod goes, whether preemption may help), not by
its name. Reasons are interned as *tuples*, because one node may fail for several reasons and the
failure message is a histogram over nodes: with ids it is a bincount.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.base.outside_texts import cut_texts


class Code(IntEnum):
    """Status codes, numbered as kubernetes v1.36 ``staging/src/k8s.io/kube-scheduler/framework``.

    *Rejected* means Unschedulable, UnschedulableAndUnresolvable or Pending: the attempt failed
    because of the cluster, so the pod waits for a cluster event that its rejectors registered.
    """

    SUCCESS = 0
    """Go on."""
    ERROR = 1
    """Something broke: the attempt ends, the pod is retried after backoff, no event needed."""
    UNSCHEDULABLE = 2
    """No, but evicting pods may help: the node is tried in preemption."""
    UNSCHEDULABLE_AND_UNRESOLVABLE = 3
    """No, and evicting pods cannot help: the node is left out of preemption."""
    WAIT = 4
    """Permit only: hold the assumed pod until allowed, rejected or timed out."""
    SKIP = 5
    """Nothing to do: the paired point of this plugin is not run in this attempt."""
    PENDING = 6
    """Rejected while waiting for something the plugin started: requeued without backoff."""

    @property
    def text(self) -> str:
        """The name as kube-scheduler prints it, e.g. ``UnschedulableAndUnresolvable``."""
        return _CODE_TEXT[self]

    @property
    def rejected(self) -> bool:
        """Whether the code is a rejection, rather than success or failure."""
        return self in _REJECTED


_REJECTED: Final = frozenset(
    {Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, Code.PENDING}
)
_CODE_TEXT: Final = {
    Code.SUCCESS: "Success",
    Code.ERROR: "Error",
    Code.UNSCHEDULABLE: "Unschedulable",
    Code.UNSCHEDULABLE_AND_UNRESOLVABLE: "UnschedulableAndUnresolvable",
    Code.WAIT: "Wait",
    Code.SKIP: "Skip",
    Code.PENDING: "Pending",
}


# To look a code up in the enum takes longer than to use it, and these are used at each answer.
SUCCESS_CODE: Final = Code.SUCCESS
SKIP_CODE: Final = Code.SKIP
ERROR_CODE: Final = Code.ERROR


class Status(msgspec.Struct, frozen=True):
    """A plugin's answer about one pod, or one pod and one node.

    Parameters
    ----------
    code
        The consequence of the answer.
    reasons
        Texts for people, in order; each is counted on its own in the failure message.
    plugin
        Name of the plugin that answered; the runner fills it in.
    """

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()
    plugin: str = ""

    @property
    def ok(self) -> bool:
        """Whether the code is Success."""
        return self.code is SUCCESS_CODE

    @property
    def rejected(self) -> bool:
        """Whether the pod was rejected (and nothing broke)."""
        return self.code.rejected

    @property
    def message(self) -> str:
        """The reasons joined as kube-scheduler joins them."""
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> Status:
        """Return the same status, signed with a plugin's name."""
        return Status(self.code, self.reasons, plugin)


SUCCESS: Final = Status()
SKIP: Final = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """Rejected, and preemption may help."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str) -> Status:
    """Rejected, and preemption cannot help."""
    return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, reasons)


def error(text: str) -> Status:
    """Something broke; the attempt ends and is retried after backoff."""
    return Status(Code.ERROR, (text,))


REASONS_CHARACTERS_MAX: Final = 64 << 20
"""Most characters of all reasons of a process: plugins from outside may name each pod in one."""
_UNNAMED: Final = ("a reason that is not shown, because the table of reasons is full",)


class ReasonTable:
    """Interns tuples of reasons to dense ids; id 0 is the empty tuple.

    Long texts are cut. A full table gives all further reasons one id.

    Parameters
    ----------
    characters_max
        The table is full when its reasons have more characters.
    """

    def __init__(self, characters_max: int = REASONS_CHARACTERS_MAX) -> None:
        self._room = characters_max
        self._ids: dict[tuple[str, ...], int] = {(): 0}
        self._tuples: list[tuple[str, ...]] = [()]

    def __len__(self) -> int:
        return len(self._tuples)

    def intern(self, *reasons: str) -> int:
        """Return the id of this tuple of reasons."""
        found = self._ids.get(reasons)
        return self._add_reasons(cut_texts(reasons)) if found is None else found

    def _add_reasons(self, reasons: tuple[str, ...]) -> int:
        if self._room < 0:
            reasons = _UNNAMED
        number = self._ids.get(reasons)
        if number is None:
            number = self._ids[reasons] = len(self._tuples)
            self._tuples.append(reasons)
            self._room -= sum(map(len, reasons))
        return number

    def reasons(self, reason_id: int) -> tuple[str, ...]:
        """Return the tuple behind an id."""
        return self._tuples[reason_id]


CodeArray = NDArray[np.uint8]
ReasonArray = NDArray[np.int32]


_BROKEN_CODES: Final = tuple(
    int(code) for code in Code if not (code.rejected or code is Code.SUCCESS)
)
BROKEN_BY_CODE: Final = np.array([code in _BROKEN_CODES for code in Code], np.bool_)
"""bool, (codes,): whether a code is neither Success nor a rejection."""

Check = tuple[NDArray[np.bool_], Code, int]
"""Rows that fail, bool, (rows of the view,); their code; the id of their reasons."""


class FilterAnswer:
    """A Filter plugin's answer for every row of the view it was given.

    Parameters
    ----------
    code_n
        uint8, (rows of the view,): values of `Code`; 0 where the node passes. Neither array may
        be changed afterwards: they are read later.
    reason_n
        int32, (rows of the view,): ids in the `ReasonTable` of the handle; 0 where it passes.
    checks
        In place of arrays, the argument of `of_checks`.

    Attributes
    ----------
    made_of
        What others made of the answer and keep as long as the answer, by id of what it was joined
        with. None unless the plugin gives the same object again and called `keep`.
    """

    __slots__ = ("_checks", "_code_n", "_failed_n", "_reason_n", "made_of")

    def __init__(
        self,
        code_n: CodeArray | None,
        reason_n: ReasonArray | None,
        *,
        checks: Sequence[Check] = (),
    ) -> None:
        self._code_n = code_n
        self._reason_n = reason_n
        self._checks = checks
        self._failed_n = checks[0][0] if len(checks) == 1 else None
        self.made_of: dict[int, Any] | None = None

    def keep(self) -> FilterAnswer:
        """Say that this object will be the answer to later pods too, and return it."""
        self.made_of = {}
        return self

    @classmethod
    def of_checks(cls, *checks: Check) -> FilterAnswer:
        """Return the answer of several checks: for each row, the first check that fails decides.

        The arrays are made when they are read: a pod that finds a node needs none.
        """
        return cls(None, None, checks=checks)

    def __len__(self) -> int:
        return len(self._checks[0][0] if self._checks else self.code_n)  # codes may not be made yet

    @property
    def code_n(self) -> CodeArray:
        """uint8, (rows of the view,): values of `Code`."""
        if self._code_n is None:
            self._code_n = np.zeros(len(self._checks[0][0]), np.uint8)
            for failed_n, code, _ in reversed(self._checks):
                np.putmask(self._code_n, failed_n, code)
        return self._code_n

    @property
    def reason_n(self) -> ReasonArray:
        """int32, (rows of the view,): ids of reasons."""
        if self._reason_n is None:
            self._reason_n = np.zeros(len(self._checks[0][0]), np.int32)
            for failed_n, _, reason_id in reversed(self._checks):
                np.putmask(self._reason_n, failed_n, reason_id)
        return self._reason_n

    @property
    def checks(self) -> Sequence[Check]:
        """The checks that the answer was made of; none where it was made of arrays."""
        return self._checks

    @property
    def failed_n(self) -> NDArray[np.bool_]:
        """bool, (rows of the view,): where the node does not pass; not to be changed."""
        if self._failed_n is None:
            if self._checks:
                self._failed_n = self._checks[0][0].copy()
                for failed_n, _, _ in self._checks[1:]:
                    self._failed_n |= failed_n
            else:
                self._failed_n = self.code_n != 0
        return self._failed_n

    @property
    def is_broken(self) -> bool:
        """Whether the answer for any row is neither Success nor a rejection."""
        if self._checks and not any(BROKEN_BY_CODE[code] for _, code, _ in self._checks):
            return False
        codes = self.code_n.tobytes()  # searched at ten times the speed of a comparison
        return any(code in codes for code in _BROKEN_CODES)


def answer_where(failed_n: NDArray[np.bool_], code: Code, reason_id: int) -> FilterAnswer | None:
    """Build the answer of a plugin with only one reason to reject.

    Parameters
    ----------
    failed_n
        bool, (rows of the view,): True where the node fails; not to be changed afterwards.
    code
        The code of failing rows.
    reason_id
        The interned reasons of failing rows.

    Returns
    -------
    FilterAnswer or None
        None when no row fails, which the engine reads as "all pass" at no cost.
    """
    if not np.count_nonzero(failed_n):
        return None
    return FilterAnswer.of_checks((failed_n, code, reason_id))


def answer_from(statuses: Sequence[Status], reasons: ReasonTable) -> FilterAnswer | None:
    """Build an answer from one `Status` a row (the scalar form of a plugin)."""
    # Thousands of rows share a few objects, and looking at a status takes longer than at its id.
    objects = {id(status): status for status in statuses}
    if all(status.ok for status in objects.values()):
        return None
    known = {key: (status.code, reasons.intern(*status.reasons)) for key, status in objects.items()}
    found = [known[id(status)] for status in statuses]
    code_n = np.fromiter((code for code, _ in found), np.uint8, len(found))
    reason_n = np.fromiter((reason for _, reason in found), np.int32, len(found))
    return FilterAnswer(code_n, reason_n)
