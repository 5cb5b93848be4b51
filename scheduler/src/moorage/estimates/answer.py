"""The estimate of a start as data, and as a sentence."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import msgspec

from moorage.api.mentions import PodName, Prose
from moorage.estimates.intervals import SHARE, Interval

_DAY_SECONDS: Final = 86_400.0
_SHORT_SECONDS: Final = 600.0
"""Intervals below this are told with seconds."""
_MONTHS: Final = [
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "May",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Oct",
    "Nov",
    "Dec",
]


class StartEstimate(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """When a waiting pod starts, as far as run times are known.

    Parameters
    ----------
    sentence
        The answer in one sentence.
    share
        The share of such intervals that should hold.
    earliest, latest
        The interval, RFC 3339; absent where nothing can be said.
    position
        Place in the queue, from 1.
    waits_for
        The pod that has to end first in most roll-outs; absent where none has to, or none is known.
    must_end
        Where no interval is known: some pods of which one has to end.
    unknown_run_times
        Running pods about whose run times nothing is known.
    roll_outs
        Number of roll-outs; the time for an answer bounds it.
    outcomes, outcomes_in
        Of how many earlier intervals it is known whether they held, and how many did.
    """

    sentence: Prose
    share: float = SHARE
    earliest: str = ""
    latest: str = ""
    position: int = 0
    waits_for: PodName = ""
    must_end: tuple[PodName, ...] = ()
    unknown_run_times: int = 0
    roll_outs: int = 0
    outcomes: int = 0
    outcomes_in: int = 0


def interval_text(interval: Interval, now: float) -> str:
    """Return an interval of seconds since the Unix epoch as "between 14:10 and 14:35 UTC"."""
    short = interval.high - interval.low < _SHORT_SECONDS
    low, high = (_time_text(each, now, short=short) for each in (interval.low, interval.high))
    if low == high:
        return f"at {low} UTC"
    return f"between {low} and {high} UTC"


def _time_text(seconds: float, now: float, *, short: bool) -> str:
    at, today = (datetime.fromtimestamp(each, UTC) for each in (seconds, now))
    clock = at.strftime("%H:%M:%S" if short else "%H:%M")
    if at.date() == today.date():
        return clock
    return f"{_MONTHS[at.month - 1]} {at.day} {clock}"


def record_text(estimate: StartEstimate) -> str:
    """Return how often earlier intervals held."""
    if not estimate.outcomes:
        return "No earlier estimate can be judged yet."
    intervals = "interval" if estimate.outcomes == 1 else f"{estimate.outcomes} intervals"
    return f"Of the last {intervals} {estimate.outcomes_in} held."
