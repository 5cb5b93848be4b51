"""Asks for estimates at arrival and at half the wait, with what was known at the time.

The order of all moments is that of the trace: what had ended was learned, what had come sets the
rate of arrivals, and intervals are widened by the misses of those that had started.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final, Literal, TypeAlias

import msgspec

from moorage.base.rng import Streams
from moorage.estimates.intervals import Interval, interval_of
from moorage.estimates.laws import RunTimeLaw
from moorage.estimates.queue_model import QueueModel, RunningPod, Shape, WaitingUnit
from moorage.estimates.rollout import Preparation, draw_start
from moorage.estimates.run_time_book import RunTimeBook
from moorage.estimates.start_observer import ARRIVALS_MOST, ArrivalRate
from moorage.estimates.track_record import TrackRecord
from moorage_lab.bench.estimates.replay import PlayedJob

RunTimes: TypeAlias = Literal["exact", "inexact", "learned"]
"""exact: jobs declare their run times. inexact: they declare one to five times as much, and how
much is learned. learned: they declare nothing."""
ASKED_AT: Final = ("arrival", "half the wait")
WAIT_LEAST: Final = 60.0
"""Jobs that wait for less are not asked about: seconds."""
_RECENT_MOST: Final = 20
_DECLARED_MOST: Final = 5.0


class EstimateOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """An estimate, and what came of it; seconds from the question on.

    Parameters
    ----------
    at
        One of `ASKED_AT`.
    shown
        The interval; infinite where there was none.
    wait
        The wait that was left.
    whole_wait
        The whole wait of the job.
    by_rate
        Position times the mean time between the last starts.
    by_waits
        The middle share of the last waits.
    """

    at: str
    shown: Interval
    wait: float
    whole_wait: float
    by_rate: float
    by_waits: Interval


class _Moment(IntEnum):
    END = 0
    START = 1
    ARRIVAL = 2
    QUESTION = 3


def ask_all(
    played: Sequence[PlayedJob], processors: int, *, run_times: RunTimes, roll_outs: int, seed: int
) -> list[EstimateOutcome]:
    """Return an estimate for each question about each job that waited."""
    return list(_Questions(played, processors, run_times, roll_outs, seed).ask())


class _Questions:
    def __init__(
        self,
        played: Sequence[PlayedJob],
        processors: int,
        run_times: RunTimes,
        roll_outs: int,
        seed: int,
    ) -> None:
        self._played = played
        self._processors = processors
        self._run_times = run_times
        self._roll_outs = roll_outs
        self._streams = Streams(seed)
        self._book = RunTimeBook()
        self._records = {at: TrackRecord() for at in ASKED_AT}
        self._rate = ArrivalRate(played[0].job.submit)
        self._came: deque[PlayedJob] = deque(maxlen=ARRIVALS_MOST)
        self._starts: deque[float] = deque(maxlen=_RECENT_MOST)
        self._waits: deque[float] = deque(maxlen=_RECENT_MOST)
        self._waiting: dict[int, PlayedJob] = {}
        self._running: dict[int, PlayedJob] = {}
        sizes = sorted({each.job.processors for each in played})
        self._shapes = [Shape((size,)) for size in sizes]
        self._shape_of = {size: index for index, size in enumerate(sizes)}
        factors = self._streams.stream("declared")
        self._factors = {each.job.number: factors.uniform(1.0, _DECLARED_MOST) for each in played}

    def ask(self) -> Iterator[EstimateOutcome]:
        for at, kind, _, each, asked_at in sorted(self._moments()):
            played = self._played[each]
            number = played.job.number
            if kind is _Moment.ARRIVAL:
                self._waiting[number] = played
                self._came.append(played)
                self._rate.note_arrival(at)
            elif kind is _Moment.START:
                self._start(played)
            elif kind is _Moment.END:
                del self._running[number]
                self._book.note_run(
                    self._classes(played), played.job.run, declared=self._declared(played)
                )
            else:
                yield self._estimate(played, at, asked_at)

    def _moments(self) -> Iterator[tuple[float, _Moment, float, int, str]]:
        for index, each in enumerate(self._played):
            yield each.job.submit, _Moment.ARRIVAL, 0.0, index, ""
            # A job that starts at once comes first; one that runs for no time ends after that.
            yield each.start + 1e-6, _Moment.START, 0.0, index, ""
            yield each.end + 2e-6, _Moment.END, 0.0, index, ""
            if each.wait >= WAIT_LEAST:
                for share, asked_at in zip((0.0, 0.5), ASKED_AT, strict=True):
                    at = each.job.submit + share * each.wait
                    yield at, _Moment.QUESTION, share, index, asked_at

    def _start(self, played: PlayedJob) -> None:
        number = played.job.number
        self._running[number] = self._waiting.pop(number)
        self._starts.append(played.start)
        self._waits.append(played.wait)
        for record in self._records.values():
            record.note_start(str(number), played.start)

    def _estimate(self, played: PlayedJob, now: float, asked_at: str) -> EstimateOutcome:
        number, record = played.job.number, self._records[asked_at]
        queue = list(self._waiting.values())
        target = next(i for i, each in enumerate(queue) if each.job.number == number)
        preparation = Preparation(self._model(queue, target, now))
        rng = self._streams.stream("roll-outs")
        draws = [draw_start(preparation, rng).seconds for _ in range(self._roll_outs)]
        drawn = interval_of([now + each for each in draws])
        shown = drawn.widened(record.widening(), least=now)
        record.note_estimate(str(number), shown=shown, drawn=drawn)
        starts = self._starts
        gaps = (starts[-1] - starts[0]) / (len(starts) - 1) if len(starts) > 1 else 0.0
        return EstimateOutcome(
            at=asked_at,
            shown=Interval(shown.low - now, shown.high - now),
            wait=played.start - now,
            whole_wait=played.wait,
            by_rate=(target + 1) * gaps,
            by_waits=interval_of(self._waits or [math.inf]),
        )

    def _model(self, queue: Sequence[PlayedJob], target: int, now: float) -> QueueModel:
        used = sum(each.job.processors for each in self._running.values())
        return QueueModel(
            free=[(self._processors - used,)],
            shapes=self._shapes,
            running=[
                RunningPod(0, (each.job.processors,), self._law(each), now - each.start)
                for each in self._running.values()
            ],
            queue=[self._unit(each) for each in queue],
            target=target,
            arrivals=[self._unit(each) for each in self._came],
            arrivals_a_second=self._rate.per_second(now),
        )

    def _unit(self, played: PlayedJob) -> WaitingUnit:
        return WaitingUnit((self._shape_of[played.job.processors],), (self._law(played),))

    def _law(self, played: PlayedJob) -> RunTimeLaw | None:
        if self._run_times == "exact":
            return RunTimeLaw(scale=played.job.run)
        return self._book.law(self._classes(played), declared=self._declared(played))

    def _classes(self, played: PlayedJob) -> tuple[str, ...]:
        return f"{played.job.user} {played.job.processors}", f"{played.job.user}", ""

    def _declared(self, played: PlayedJob) -> float | None:
        if self._run_times == "learned":
            return None
        factor = self._factors[played.job.number] if self._run_times == "inexact" else 1.0
        return max(1.0, factor * played.job.run)
