"""One row on which pods are tried out as numbers: nothing of the cluster is changed.

Part of what a failed search lends PostFilter plugins, for the everyday case that from one
preemptor to the next one or two rows have to be tried.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from moorage.engine.filter_pass import PASSES, RowVerdict, verdict_status
from moorage.framework.profile import Profile
from moorage.framework.status import Status
from moorage.snapshot.shifted import RowSums


class SummedRow:
    """`SumsTrial` over numbers of its own.

    Parameters
    ----------
    profile
        The attempt's.
    ask
        What the Filters that read sums say of the row if it held more.
    by_node
        What those say of it that read its node alone, with any pods and without.
    nominated
        What the pods hold that are nominated there first; None where there are none.
    """

    def __init__(
        self,
        profile: Profile,
        ask: Callable[[RowSums], RowVerdict],
        by_node: RowVerdict,
        nominated: RowSums | None,
    ) -> None:
        self._profile = profile
        self._ask = ask
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
        return verdict_status(self._profile, self._verdict())

    def put_back(self, amounts: Mapping[str, int]) -> bool:
        """Put a pod back if the row still passes with it; return whether it does."""
        self.shift(amounts, 1)
        if self._verdict() is PASSES:
            return True
        self.shift({name: -amount for name, amount in amounts.items()}, -1)
        return False

    def _verdict(self) -> RowVerdict:
        found = min(self._by_node, self._ask(RowSums(self._amounts, self._pods)))
        beside = self._nominated
        if beside is None:
            return found
        first = self._ask(
            RowSums(
                {
                    name: self._amounts.get(name, 0) + beside.amounts.get(name, 0)
                    for name in self._amounts.keys() | beside.amounts.keys()
                },
                self._pods + beside.pods,
            )
        )
        return first if first is not PASSES and first[0] <= found[0] else found
