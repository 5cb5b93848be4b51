"""The filter results of attempts: how they are kept, and rebuilt.

Attempts of one shape share the cached filter results of that shape as they were: `FilteredNodes`.
Filters that are asked afresh in each attempt add rejections. Each attempt keeps these itself, one
bit for each row: `MoreRejections`. `LookedAt` puts both together when somebody asks.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.engine.filters.filter_results import EXTENDED, FilterResults, RecordedAnswer
from moorage.framework.profile import Profile
from moorage.framework.status import Code, FilterAnswer, ReasonTable

Bits: TypeAlias = bytes
"""One bit for each row looked at."""

_NAME_BYTES: Final = 72
_EMPTY_BYTES: Final = 400
_ROW_BYTES: Final = 6
"""Index of the plugin, code and reasons of one row."""


class NodeNames(msgspec.Struct, gc=False):
    """Node names by row, as they were; notes share them until a node comes or goes.

    Parameters
    ----------
    names
        The names.
    holders
        How many filter results hold this; kept by the ring of records.
    """

    names: tuple[str, ...]
    holders: int = 0

    @property
    def nbytes(self) -> int:
        """Memory, bytes; the length of a name is a guess."""
        return _NAME_BYTES * len(self.names)


class FilterTexts(msgspec.Struct, frozen=True):
    """What the indices in filter results stand for.

    Results hold this and not the profile: no collection of garbage looks at them, so a profile in
    them would keep a scheduler for ever that has ended.

    Parameters
    ----------
    plugins
        Names of the profile's Filter plugins.
    reasons
        The texts of reasons.
    """

    plugins: tuple[str, ...]
    reasons: ReasonTable

    @classmethod
    def from_profile(cls, profile: Profile) -> FilterTexts:
        """Return the texts of a profile."""
        return cls(tuple([plugin.name for plugin in profile.filters]), profile.handle.reasons)


class FilteredNodes(msgspec.Struct, gc=False):
    """The filter result on every node that an attempt looked at.

    Parameters
    ----------
    names
        Node names by row, as they were.
    rows
        The rows looked at, ascending; None for all.
    filtered
        The filter result on them; not changed any more. None once `shrink` was called.
    texts
        Tells the names of plugins, and the texts of reasons.
    passed_bits
        Whether each row passed; None before `shrink`, and where no ranking needs it.
    holders, showing
        How many shape notes hold this, and how many of them tell the rejections; kept by the ring
        of records.
    ranked
        Whether any of them ranks the nodes that passed.
    """

    names: NodeNames
    rows: NDArray[np.int64] | None
    filtered: FilterResults | None
    texts: FilterTexts
    passed_bits: Bits | None = None
    holders: int = 0
    showing: int = 0
    ranked: bool = False

    @property
    def nbytes(self) -> int:
        """Memory of the arrays, bytes, without the names."""
        size = _EMPTY_BYTES if self.rows is None else _EMPTY_BYTES + self.rows.nbytes
        if self.filtered is not None:
            return size + len(self.filtered.plugin_n) * _ROW_BYTES * self.filtered.array_sets
        return size if self.passed_bits is None else size + len(self.passed_bits)

    @property
    def count(self) -> int:
        """Number of rows looked at."""
        return len(self.names.names if self.rows is None else self.rows)

    def shrink(self) -> None:
        """Drop the rejections; what nodes passed stays only where a ranking needs it."""
        if self.filtered is not None:
            if self.ranked:
                self.passed_bits = _packed(self.filtered.passed)
            else:
                self.rows = None
            self.filtered = None

    def passed(self) -> NDArray[np.bool_]:
        """Return bool, (rows looked at,): whether each row passed."""
        if self.filtered is not None:
            return self.filtered.passed
        assert self.passed_bits is not None, "shrunk"
        return _unpacked(self.passed_bits, self.count)


class MoreRejections(msgspec.Struct, frozen=True, gc=False):
    """The nodes that one plugin, asked afresh, is the first to reject.

    Parameters
    ----------
    plugin
        Its index among the Filter plugins of the profile.
    failed
        The rows that it rejects.
    checks
        (rows, code, id of the reasons): the first check with a row's bit decides. Rows are None
        for the last check, which decides every row left.
    arrays
        In place of checks, the answer itself, for plugins that answer in arrays.
    """

    plugin: int
    failed: Bits
    checks: tuple[tuple[Bits | None, Code, int], ...]
    arrays: FilterAnswer | None

    @classmethod
    def from_answer(cls, recorded: RecordedAnswer) -> MoreRejections:
        """Return the rejections of a recorded answer."""
        plugin, failed_n, answer = recorded
        failed, checks = _packed(failed_n), answer.checks
        if not checks:
            return cls(plugin, failed, (), answer)
        parts: list[tuple[Bits | None, Code, int]] = []
        for rows, code, reason in checks[:-1]:
            bits = _packed(rows)
            if bits == failed:  # no row is left for the other checks
                return cls(plugin, failed, (*parts, (None, code, reason)), None)
            parts.append((bits, code, reason))
        _, code, reason = checks[-1]
        return cls(plugin, failed, (*parts, (None, code, reason)), None)

    @property
    def nbytes(self) -> int:
        """Memory, bytes."""
        size = _EMPTY_BYTES + len(self.failed) * max(len(self.checks), 1)
        return size if self.arrays is None else size + len(self.failed) * 8 * _ROW_BYTES

    def failed_n(self, count: int) -> NDArray[np.bool_]:
        """Return bool, (rows looked at,): the rows that it rejects."""
        return _unpacked(self.failed, count)

    def plugin_answer(self, count: int) -> FilterAnswer:
        """Return the plugin's answer; rows that an earlier plugin rejects may differ."""
        if self.arrays is not None:
            return self.arrays
        checks = [
            (np.ones(count, np.bool_) if rows is None else _unpacked(rows, count), code, reason)
            for rows, code, reason in self.checks
        ]
        made, failed_n = FilterAnswer.of_checks(*checks), self.failed_n(count)
        return FilterAnswer(
            (made.code_n * failed_n).astype(np.uint8), (made.reason_n * failed_n).astype(np.int32)
        )


class LookedAt(msgspec.Struct, frozen=True):
    """The nodes that an attempt looked at, put together from what is kept of them.

    Parameters
    ----------
    filtered
        The filter result that attempts share.
    more
        What the attempt's own Filters rejected besides.
    """

    filtered: FilteredNodes
    more: tuple[MoreRejections, ...]

    def rejections(self) -> dict[tuple[str, str, tuple[str, ...]], list[str]]:
        """Return (plugin, code, reasons) -> the nodes rejected so, in the order of rows.

        A node that is absent here was not looked at, or passed.
        """
        shared, texts = self.filtered, self.filtered.texts
        assert shared.filtered is not None, "shrunk"
        filtered = shared.filtered.copy()
        for each in self.more:
            filtered.record_answer(each.plugin, each.plugin_answer(shared.count))
        by_reason: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
        for position in np.flatnonzero(~filtered.passed).tolist():
            index, code, reason = filtered.result_at(position)
            plugin = "" if index == EXTENDED else texts.plugins[index]
            key = plugin, Code(code).text, texts.reasons.reasons(reason)
            row = position if shared.rows is None else int(shared.rows[position])
            by_reason.setdefault(key, []).append(self.name_of(row))
        return by_reason

    def passed_rows(self) -> NDArray[np.int64]:
        """Return int64: the rows that passed every Filter, in the order they were looked at."""
        passed_n, rows = self.filtered.passed().copy(), self.filtered.rows
        for each in self.more:
            passed_n &= ~each.failed_n(self.filtered.count)
        passing: NDArray[np.int64] = passed_n.nonzero()[0]
        return passing if rows is None else rows[passing]

    def passed(self) -> list[str]:
        """Return the nodes that passed every Filter, in the order they were looked at."""
        return [self.name_of(row) for row in self.passed_rows().tolist()]

    def name_of(self, row: int) -> str:
        """Return the name of the node in a row, as it was."""
        return self.filtered.names.names[row]


def _packed(rows_n: NDArray[np.bool_]) -> Bits:
    return np.packbits(rows_n).tobytes()


def _unpacked(bits: Bits, count: int) -> NDArray[np.bool_]:
    return np.unpackbits(np.frombuffer(bits, np.uint8), count=count).view(np.bool_)
