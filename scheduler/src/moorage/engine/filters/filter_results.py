"""The filter result on every row of a view: the first failing plugin decides a row.

Place in the flow: between answers and search.
"""

from __future__ import annotations

import operator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.engine.filters.tally import PASSED, RowResult, Tally
from moorage.framework.profile import Profile
from moorage.framework.status import (
    BROKEN_BY_CODE,
    SUCCESS,
    Code,
    CodeArray,
    FilterAnswer,
    ReasonArray,
    Status,
)

EXTENDED = 254
"""Plugin index of a row that an extender failed; so a profile has at most 254 Filter plugins."""

BoolArray = NDArray[np.bool_]

RecordedAnswer = tuple[int, BoolArray, FilterAnswer]
"""(index of a plugin, the rows that it is the first to fail, its answer)."""

PASSES: Final[RowResult] = (PASSED, 0, 0)
"""The filter result on a row that no plugin failed."""


ROW_BYTES: Final = 6
"""Memory of a row in a filter result: a uint8 of plugin and code each, an int32 of the reason."""

_NOWHERE: Final = np.empty(0, np.int64)
_NOWHERE.flags.writeable = False


class FilterResults:
    """The filter result on every row of a view.

    Parameters
    ----------
    n
        Rows of the view; all pass to begin with.

    Attributes
    ----------
    plugin_n
        uint8: index of the first failing plugin in ``profile.filters``, `PASSED` where the row
        passed.

    Notes
    -----
    The rule: of the plugins that fail a row, the first in the order of the profile decides the row.
    Its code and its reasons are the row's. `record_answer` and `merge` apply the rule; what begins
    with ``put`` overwrites rows of which a later pass has said more.

    Four things make it quick. Most pods find a node and need no reasons, so an answer is written
    into `plugin_n` at once, and into codes and reasons when they are first read. Plugins mostly
    answer in order, and then a plugin can fail only rows that still pass. A copy shares codes and
    reasons until one of the two is written. Counts and lists of rows are made when first read, and
    dropped when a row changes.
    """

    __slots__ = (
        "_code_n",
        "_frozen",
        "_last_plugin",
        "_may_be_broken",
        "_reason_n",
        "_rows",
        "_shared",
        "_tally",
        "_unwritten",
        "plugin_n",
    )

    def __init__(self, n: int) -> None:
        self.plugin_n = np.empty(n, np.uint8)
        self.plugin_n.fill(PASSED)
        self._code_n: CodeArray | None = None
        self._reason_n: ReasonArray | None = None
        self._shared = False  # a copy reads the same arrays of codes and reasons
        self._unwritten: list[RecordedAnswer] = []  # answers not yet in codes and reasons
        self._last_plugin = -1  # no plugin of a greater index failed any row
        self._may_be_broken = False  # a row may have a result that is no rejection
        self._tally: Tally | None = None  # made when it is first read
        self._rows: dict[int, NDArray[np.int64]] = {}  # by code, made when first read
        self._frozen: FilterResults | None = None  # a copy as of now, made when first asked for

    @classmethod
    def from_columns(
        cls, code_n: CodeArray, reason_n: ReasonArray, plugin_n: CodeArray
    ) -> FilterResults:
        """Return the filter result with these columns."""
        results = cls(0)
        results._code_n, results._reason_n, results.plugin_n = code_n, reason_n, plugin_n
        results._last_plugin, results._may_be_broken = PASSED, True
        return results

    @property
    def code_n(self) -> CodeArray:
        """uint8: `Code` of the first failing plugin, 0 where a row passed."""
        return self._written()[0]

    @property
    def reason_n(self) -> ReasonArray:
        """int32: the interned reasons of the first failing plugin."""
        return self._written()[1]

    def record_answer(self, index: int, answer: FilterAnswer) -> None:
        """Record a plugin's failures on rows that no plugin of a lower index failed."""
        self._drop_counts()
        self._may_be_broken = self._may_be_broken or answer.is_broken
        if index > self._last_plugin:  # no row was failed by a later plugin
            new = self.plugin_n == PASSED
            new &= answer.failed_n
            self._last_plugin = index
            self.plugin_n -= new.view(np.uint8) * np.uint8(PASSED - index)
            self._unwritten.append((index, new, answer))
            return
        new = self.plugin_n > index
        new &= answer.failed_n
        self._take_rows(new, answer.code_n, answer.reason_n, np.uint8(index))

    def merge(self, other: FilterResults) -> None:
        """Take over the filter results of another pass where its plugin comes first."""
        if other._last_plugin < 0:
            return
        self._take_rows(
            other.plugin_n < self.plugin_n, other.code_n, other.reason_n, other.plugin_n
        )
        self._widen_bounds(other)

    def put_rows(self, at: NDArray[np.int64], other: FilterResults) -> None:
        """Overwrite some rows with the filter results of a pass over just those rows."""
        self._put_rows(at, other, slice(None))

    def put_failures(self, at: NDArray[np.int64], other: FilterResults) -> None:
        """Overwrite rows with the failures in a pass over just these rows."""
        failed = ~other.passed
        self._put_rows(at[failed], other, failed)

    def put_sooner(self, at: NDArray[np.int64], other: FilterResults) -> None:
        """Overwrite rows where a pass over just these rows fails at an earlier plugin.

        For a pass of some plugins that judge more strictly now; the answers of other plugins are
        unchanged.
        """
        sooner = ~other.passed & (other.plugin_n <= self.plugin_n[at])
        self._put_rows(at[sooner], other, sooner)

    def result_at(self, position: int) -> RowResult:
        """Return the filter result on one row."""
        plugin = self.plugin_n.item(position)
        if plugin == PASSED:
            return PASSES
        code_n, reason_n = self._written()
        return plugin, code_n.item(position), reason_n.item(position)

    def put_row(self, position: int, result: RowResult) -> None:
        """Overwrite one row with a filter result, which is Success or a rejection."""
        before, plugin = self.result_at(position), result[0]
        if before == result:
            return
        if self._tally is not None:
            self._tally.move(before, result)
        self._frozen = None
        if self._rows and before[1] != result[1]:
            self._rows = {}
        code_n, reason_n = self._writable()
        self.plugin_n[position], code_n[position], reason_n[position] = result
        if self._last_plugin < plugin != PASSED:
            self._last_plugin = plugin

    def at_rows(self, positions: NDArray[np.int64]) -> FilterResults:
        """Return the filter result on some of the rows."""
        part = FilterResults(0)
        part._code_n, part._reason_n = self.code_n[positions], self.reason_n[positions]
        part.plugin_n = self.plugin_n[positions]
        part._last_plugin, part._may_be_broken = self._last_plugin, self._may_be_broken
        return part

    def copy(self) -> FilterResults:
        """Return an independent copy."""
        copy = FilterResults(0)
        copy.plugin_n, copy._unwritten = self.plugin_n.copy(), self._unwritten.copy()
        copy._code_n, copy._reason_n = self._code_n, self._reason_n
        copy._last_plugin, copy._may_be_broken = self._last_plugin, self._may_be_broken
        copy._shared = self._shared = True
        return copy

    def recorded_since(self, earlier: FilterResults) -> list[RecordedAnswer] | None:
        """Return what was recorded here since this was copied from an earlier filter result.

        None where rows were changed in another way, or in the earlier one; a guess on the safe
        side.
        """
        if self._code_n is not earlier._code_n or self._reason_n is not earlier._reason_n:
            return None
        before = len(earlier._unwritten)
        if before and any(map(operator.is_not, self._unwritten, earlier._unwritten)):
            return None
        return self._unwritten[before:]

    def frozen(self) -> FilterResults:
        """Return a copy that is not changed any more; the same one until a row changes here."""
        if self._frozen is None:
            self._frozen = self.copy()
        return self._frozen

    @property
    def array_sets(self) -> int:
        """Number of sets of three whole arrays in memory, unsettled answers included."""
        return 1 + len(self._unwritten)

    @property
    def nbytes(self) -> int:
        """Memory of the three arrays, bytes; codes and reasons count before they are written."""
        return len(self.plugin_n) * ROW_BYTES

    @property
    def is_broken(self) -> bool:
        """Whether the filter result on any row is neither Success nor a rejection."""
        return self._may_be_broken and bool(self.broken.any())

    @property
    def broken(self) -> BoolArray:
        """bool, (rows of the view,): whether a row's result is neither Success nor a rejection."""
        broken: BoolArray = BROKEN_BY_CODE[self.code_n]
        return broken

    @property
    def tally(self) -> Tally:
        """The rows counted by filter result; kept up to date while rows are put one by one."""
        if self._tally is None:
            self._tally = Tally(self.plugin_n, *self._written())
        return self._tally

    @property
    def passing(self) -> NDArray[np.int64]:
        """int64: positions of the rows that passed, ascending; not to be changed."""
        if self._tally is not None and not self._tally.passed:
            return _NOWHERE  # known without a look at each row
        passing: NDArray[np.int64] = (self.plugin_n == PASSED).nonzero()[0]
        return passing

    @property
    def passed(self) -> BoolArray:
        """bool, (rows of the view,): whether each row passed."""
        passed: BoolArray = self.plugin_n == PASSED
        return passed

    def rows_with(self, code: Code) -> NDArray[np.int64]:
        """Return int64: positions of the rows whose filter result has this code, ascending.

        Not to be changed: kept until another row has it, because successive preemptors ask for the
        same thousands of rows.
        """
        found = self._rows.get(code)
        if found is None:
            found = self._rows[code] = (self.code_n == np.uint8(code)).nonzero()[0]
            found.flags.writeable = False
        return found

    def status(self, profile: Profile, position: int) -> Status:
        """Return the filter result on one row as a `Status`."""
        return result_status(profile, self.result_at(position))

    def extend(self, position: int, code: Code, reason: int) -> None:
        """Let an extender fail a row."""
        code_n, reason_n = self._writable()
        self._drop_counts()
        code_n[position], reason_n[position] = code, reason
        self.plugin_n[position] = EXTENDED
        self._last_plugin, self._may_be_broken = PASSED, True

    # -- codes and reasons ---------------------------------------------------------------------

    def _drop_counts(self) -> None:
        """Drop counts, row lists and the frozen copy, because rows get other results."""
        self._tally = self._frozen = None
        if self._rows:
            self._rows = {}

    def _written(self) -> tuple[CodeArray, ReasonArray]:
        """Write what is unwritten, and return codes and reasons to be read."""
        if self._code_n is not None and self._reason_n is not None and not self._unwritten:
            return self._code_n, self._reason_n
        if self._code_n is None or self._reason_n is None:
            n = len(self.plugin_n)
            self._code_n, self._reason_n = np.zeros(n, np.uint8), np.zeros(n, np.int32)
            self._shared = False
        if self._unwritten:
            self._unshare(self._code_n, self._reason_n)
            for _, new, answer in self._unwritten:  # one answer decides a row: sums beat masks
                self._code_n += answer.code_n * new
                self._reason_n += answer.reason_n * new
            self._unwritten = []
        return self._code_n, self._reason_n

    def _writable(self) -> tuple[CodeArray, ReasonArray]:
        """Return codes and reasons to be written."""
        code_n, reason_n = self._written()
        return self._unshare(code_n, reason_n) if self._shared else (code_n, reason_n)

    def _unshare(self, code_n: CodeArray, reason_n: ReasonArray) -> tuple[CodeArray, ReasonArray]:
        if self._shared:
            self._code_n, self._reason_n = code_n.copy(), reason_n.copy()
            self._shared = False
            return self._code_n, self._reason_n
        return code_n, reason_n

    def _take_rows(
        self,
        where_n: BoolArray,
        code_n: CodeArray,
        reason_n: ReasonArray,
        plugin_n: CodeArray | np.uint8,
    ) -> None:
        own_code_n, own_reason_n = self._writable()
        self._drop_counts()
        np.putmask(own_code_n, where_n, code_n)
        np.putmask(own_reason_n, where_n, reason_n)
        np.putmask(self.plugin_n, where_n, plugin_n)

    def _put_rows(
        self, rows: NDArray[np.int64], other: FilterResults, positions: BoolArray | slice
    ) -> None:
        code_n, reason_n = self._writable()
        self._drop_counts()
        code_n[rows] = other.code_n[positions]
        reason_n[rows] = other.reason_n[positions]
        self.plugin_n[rows] = other.plugin_n[positions]
        self._widen_bounds(other)

    def _widen_bounds(self, other: FilterResults) -> None:
        """Let what is known of all rows cover the rows of another result."""
        self._last_plugin = max(self._last_plugin, other._last_plugin)
        self._may_be_broken = self._may_be_broken or other._may_be_broken


def result_status(profile: Profile, result: RowResult) -> Status:
    """Return the filter result on a row as a `Status`."""
    index, code, reason = result
    if index == PASSED:
        return SUCCESS
    name = "" if index == EXTENDED else profile.filters[index].name
    return Status(Code(code), profile.handle.reasons.reasons(reason), name)
