"""What a plugin answers: a `Status`, and its array form `FilterAnswer`.

A code is documented by its consequence (where the pod goes, whether preemption may help), not by
its name. Reasons are interned as *tuples*, because one node may fail for several reasons and the
failure message is a histogram over nodes: with ids it is a bincount.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray


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
        """Whether the code means "not here, not now" rather than success or failure."""
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


class Status(msgspec.Struct, frozen=True):
    """A plugin's answer about one pod, or one pod and one node.

    Parameters
    ----------
    code
        What follows from the answer.
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
        return self.code is Code.SUCCESS

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


class ReasonTable:
    """Interns tuples of reasons to dense ids; id 0 is the empty tuple."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, ...], int] = {(): 0}
        self._tuples: list[tuple[str, ...]] = [()]

    def __len__(self) -> int:
        return len(self._tuples)

    def intern(self, *reasons: str) -> int:
        """Return the id of this tuple of reasons."""
        found = self._ids.get(reasons)
        if found is None:
            found = self._ids[reasons] = len(self._tuples)
            self._tuples.append(reasons)
        return found

    def reasons(self, reason_id: int) -> tuple[str, ...]:
        """Return the tuple behind an id."""
        return self._tuples[reason_id]


CodeArray = NDArray[np.uint8]
ReasonArray = NDArray[np.int32]


class FilterAnswer(msgspec.Struct, frozen=True):
    """A Filter plugin's answer for every row of the view it was given.

    Parameters
    ----------
    code_n
        uint8, (rows of the view,): values of `Code`; 0 where the node passes.
    reason_n
        int32, (rows of the view,): ids in the `ReasonTable` of the handle; 0 where it passes.
    """

    code_n: CodeArray
    reason_n: ReasonArray


def answer_where(failed_n: NDArray[np.bool_], code: Code, reason_id: int) -> FilterAnswer | None:
    """Build the answer of a plugin that knows one way to fail.

    Parameters
    ----------
    failed_n
        bool, (rows of the view,): True where the node fails.
    code
        The code of failing rows.
    reason_id
        The interned reasons of failing rows.

    Returns
    -------
    FilterAnswer or None
        None when no row fails, which the engine reads as "all pass" at no cost.
    """
    if not failed_n.any():
        return None
    return FilterAnswer(
        failed_n.astype(np.uint8) * np.uint8(code),
        failed_n.astype(np.int32) * np.int32(reason_id),
    )


def answer_from(statuses: Sequence[Status], reasons: ReasonTable) -> FilterAnswer | None:
    """Build an answer from one `Status` a row (the scalar form of a plugin)."""
    if all(status.ok for status in statuses):
        return None
    code_n = np.fromiter((status.code for status in statuses), np.uint8, len(statuses))
    reason_n = np.fromiter(
        (reasons.intern(*status.reasons) for status in statuses), np.int32, len(statuses)
    )
    return FilterAnswer(code_n, reason_n)
