"""Draws the starts of one unit for some milliseconds; what comes out is data for an answer."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Final

import msgspec

from moorage.base.rng import Random
from moorage.estimates.intervals import interval_of
from moorage.estimates.rollout import CutShortError, DrawnStart, Preparation, draw_start
from moorage.forecast.start_model import StartModel

ROLL_OUTS_MOST: Final = 100
ROLL_OUTS_LEAST: Final = 10
"""So many are done though the time is over, while there is patience."""


class DrawnEstimate(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of roll-outs, before its interval is widened by earlier misses.

    Parameters
    ----------
    low, high
        Seconds from now; infinite where roll-outs found no start.
    position, unknown, must_end, lacks_members
        As in `StartModel`.
    waits_for
        The pod that ended first on the nodes of the start, in most roll-outs.
    roll_outs
        Number of roll-outs.
    """

    low: float
    high: float
    position: int
    unknown: int
    must_end: tuple[str, ...] = ()
    lacks_members: bool = False
    waits_for: str = ""
    roll_outs: int = 0


def draw_estimate(
    model: StartModel,
    rng: Random,
    *,
    is_over: Callable[[], bool],
    is_hopeless: Callable[[], bool],
    most: int = ROLL_OUTS_MOST,
) -> DrawnEstimate:
    """Return an estimate of as many roll-outs as there is time for.

    Parameters
    ----------
    is_over
        Whether the time is over.
    is_hopeless
        Whether the time is over for the least number of roll-outs, too: a machine may be busy.
    most
        Most roll-outs.
    """
    starts = list[DrawnStart]()
    if not model.lacks_members:
        preparation = Preparation(model.queue)
        try:
            while len(starts) < most:
                ends = is_hopeless if len(starts) < ROLL_OUTS_LEAST else is_over
                starts.append(draw_start(preparation, rng, is_over=ends))
        except CutShortError:
            pass
    interval = interval_of([each.seconds for each in starts] or [math.inf])
    names = Counter(each.first_end for each in starts if each.first_end)
    return DrawnEstimate(
        low=interval.low,
        high=interval.high,
        position=model.position,
        unknown=model.unknown,
        must_end=model.must_end,
        lacks_members=model.lacks_members,
        waits_for=min(names, key=lambda name: (-names[name], name)) if names else "",
        roll_outs=len(starts),
    )
