"""The law of a run time: draws of the whole run time of a pod that has run for a while."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from itertools import accumulate

import msgspec

from moorage.estimates.sketch import position_of, value_at

_TAIL_LEAST = 1e-9
_TABLE_STEPS = 256
"""Steps of the table of quantiles, which makes a draw cheap."""


class RunTimeLaw(msgspec.Struct, frozen=True):
    """A law of run times: certain, or by shares of bins.

    Parameters
    ----------
    bins, cumulative
        Bins in order, and the share of run times up to the end of each; empty for a certain one.
    scale
        Seconds that the bins are multiples of; the run time itself where it is certain.
    most
        No run time is longer: a deadline ends the pod.
    quantiles
        Multiples of the scale at equal steps of the share; empty for a certain one.
    """

    bins: tuple[int, ...] = ()
    cumulative: tuple[float, ...] = ()
    scale: float = 1.0
    most: float = math.inf
    quantiles: tuple[float, ...] = ()

    def share_until(self, seconds: float) -> float:
        """Return the share of run times of at most so many seconds."""
        if not self.bins:
            return float(seconds >= self.scale)
        place = position_of(seconds / self.scale) if self.scale > 0 else math.inf
        index = bisect_left(self.bins, math.floor(place)) if place < math.inf else len(self.bins)
        before = self.cumulative[index - 1] if index else 0.0
        if index == len(self.bins) or self.bins[index] != math.floor(place):
            return before
        return before + (self.cumulative[index] - before) * (place - math.floor(place))

    def run_seconds(
        self, draw: float, *, elapsed: float = 0.0, share: float | None = None
    ) -> float:
        """Return the whole run time of a pod that has run for some seconds.

        Parameters
        ----------
        draw
            From 0 to 1: 0 is the shortest run time that is still possible.
        elapsed
            Seconds that the pod has run. Longer than any run time that is known: it runs as long
            again at most.
        share
            `share_until` of `elapsed`, where the caller has it.
        """
        if not self.bins:
            return max(elapsed, min(self.scale, self.most))
        begin = (self.share_until(elapsed) if share is None else share) if elapsed > 0 else 0.0
        if 1.0 - begin < _TAIL_LEAST:
            return max(elapsed, min(elapsed * (1.0 + draw), self.most))
        place = (begin + draw * (1.0 - begin)) * _TABLE_STEPS
        index = min(int(place), _TABLE_STEPS - 1)
        low = self.quantiles[index]
        seconds = self.scale * (low + (self.quantiles[index + 1] - low) * (place - index))
        return max(elapsed, min(seconds, self.most))


def law_of(shares: Mapping[int, float]) -> RunTimeLaw:
    """Return the law of shares of bins, which need not add up to 1."""
    bins = tuple(sorted(each for each, share in shares.items() if share > 0))
    total = sum(shares[each] for each in bins)
    cumulative = tuple(accumulate(shares[each] / total for each in bins))
    quantiles = tuple(
        value_at(_place(bins, cumulative, step / _TABLE_STEPS)) for step in range(_TABLE_STEPS + 1)
    )
    return RunTimeLaw(bins, cumulative, quantiles=quantiles)


def _place(bins: Sequence[int], cumulative: Sequence[float], share: float) -> float:
    """Return the place among bins up to which a share of run times lies."""
    index = min(bisect_left(cumulative, share), len(bins) - 1)
    before = cumulative[index - 1] if index else 0.0
    part = (share - before) / (cumulative[index] - before)
    return bins[index] + min(max(part, 0.0), 1.0)
