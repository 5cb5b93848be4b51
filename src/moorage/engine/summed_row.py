"""One row on which pods are tried out as numbers: nothing of the cluster is changed.

Part of what a failed search lends PostFilter plugins, for the everyday case that from one
preemptor to the next one or two rows have to be tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from moorage.engine.filter_pass import PASSES, RowVerdict, verdict_status
from moorage.framework.profile import Profile
from moorage.framework.status import SUCCESS, Status
from moorage.snapshot.shifted import RowSums


class SummedRow:
    """`SumsTrial` over numbers of its own.

    Parameters
    ----------
    profile
        The attempt's.
    row
        Which row.
    ask, soonest
        What the Filters that read sums say of a row if it held more, and the index of their first.
    by_node
        What those say of the row that read its node alone, with any pods and without.
    nominated
        What the pods hold that are nominated there first; None where there are none.
    """

    __slots__ = (
        "_amounts",
        "_ask",
        "_by_node",
        "_nominated",
        "_pods",
        "_profile",
        "_row",
        "_soonest",
    )

    def __init__(
        self,
        profile: Profile,
        row: int,
        ask: Callable[[int, RowSums], RowVerdict],
        *,
        soonest: int,
        by_node: RowVerdict,
        nominated: RowSums | None,
    ) -> None:
        self._profile = profile
        self._row = row
        self._ask = ask
        self._soonest = soonest
        self._by_node = by_node
        self._nominated = nominated
        self._amounts: dict[str, int] = {}
        self._pods = 0

    def shift(self, amounts: Mapping[str, int], pods: int) -> None:
        """Add to the sums."""
        mine = self._amounts
        for name, amount in amounts.items():
            mine[name] = mine.get(name, 0) + amount
        self._pods += pods

    def judge(self) -> Status:
        """Run every Filter on the row as it is now."""
        found = self._verdict()
        return SUCCESS if found is PASSES else verdict_status(self._profile, found)

    def put_back(self, amounts: Mapping[str, int]) -> bool:
        """Put a pod back if the row still passes with it; return whether it does."""
        self.shift(amounts, 1)
        if self._verdict() is PASSES:
            return True
        self.shift({name: -amount for name, amount in amounts.items()}, -1)
        return False

    def _verdict(self) -> RowVerdict:
        """Return the verdict beside nominated pods where it fails as soon, or the one without."""
        mine, beside, by_node = self._amounts, self._nominated, self._by_node
        first = PASSES
        if beside is not None:
            both = dict(mine)
            for name, amount in beside.amounts.items():
                both[name] = both.get(name, 0) + amount
            first = self._ask(self._row, RowSums(both, self._pods + beside.pods))
            if first[0] == self._soonest:  # without those pods none of them fails sooner
                return first if first[0] <= by_node[0] else by_node
        found = min(by_node, self._ask(self._row, RowSums(mine, self._pods)))
        return first if first is not PASSES and first[0] <= found[0] else found
