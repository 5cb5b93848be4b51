"""The answers of the extenders in one attempt, for its record."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from moorage.framework.status import Code, Status

Alike: TypeAlias = tuple[str, tuple[str, ...], tuple[str, ...]]
"""(status code, reasons, the nodes that were rejected so)."""

_BYTES: Final = 400
_ALIKE_BYTES: Final = 300
_NODE_BYTES: Final = 8
_SCORE_BYTES: Final = 90


class ExtenderAnswer(msgspec.Struct, frozen=True, gc=False):
    """The answers of one extender in one attempt.

    Parameters
    ----------
    extender
        Its URL.
    weight
        The multiplier of its scores in a total.
    rejected
        The nodes that it rejected, by code and reasons.
    scores
        (node, score) of the nodes that are noted, before weighting.
    errors
        The texts of the calls that failed.
    """

    extender: str
    weight: int
    rejected: tuple[Alike, ...]
    scores: tuple[tuple[str, int], ...]
    errors: tuple[str, ...]

    @property
    def nbytes(self) -> int:
        """Memory, bytes; the node names are not counted, as the snapshot has them."""
        texts = sum(2 * len(text) for _, reasons, _ in self.rejected for text in reasons)
        errors = sum(_ALIKE_BYTES + 2 * len(text) for text in self.errors)
        nodes = sum(_ALIKE_BYTES + _NODE_BYTES * len(names) for _, _, names in self.rejected)
        return _BYTES + texts + errors + nodes + _SCORE_BYTES * len(self.scores)


class ExtenderNote:
    """Takes down the answers of one extender.

    Parameters
    ----------
    extender, weight
        Its URL, and the multiplier of its scores in a total.
    """

    def __init__(self, extender: str, weight: int) -> None:
        self._extender = extender
        self._weight = weight
        self._rejected: dict[tuple[Code, tuple[str, ...]], list[str]] = {}
        self._scores: Mapping[str, int] = {}
        self._errors: list[str] = []

    def filtered(
        self, names: Sequence[str], accepted: Collection[str], statuses: Mapping[str, Status]
    ) -> None:
        """Take down the answer to a filter call.

        Parameters
        ----------
        names
            The nodes that it was asked about.
        accepted
            The nodes that passed.
        statuses
            Node to the status with which it rejected the node; may lack rejected nodes.
        """
        for name in names:
            if name not in accepted:
                status = statuses.get(name)
                code = Code.UNSCHEDULABLE_AND_UNRESOLVABLE if status is None else status.code
                reasons = () if status is None else status.reasons
                self._rejected.setdefault((code, reasons), []).append(name)

    def scored(self, scores: Mapping[str, int]) -> None:
        """Take down the answer to a prioritize call: scores by node, before weighting."""
        self._scores = scores

    def failed(self, text: str) -> None:
        """Take down a call that failed."""
        self._errors.append(text)

    def answer(self, nodes: Collection[str]) -> ExtenderAnswer:
        """Return the answers, with the scores of some nodes."""
        return ExtenderAnswer(
            self._extender,
            self._weight,
            tuple(
                (code.text, reasons, tuple(names))
                for (code, reasons), names in self._rejected.items()
            ),
            tuple((name, self._scores[name]) for name in nodes if name in self._scores),
            tuple(self._errors),
        )
