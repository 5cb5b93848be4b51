"""The estimate of a start: asked by a running scheduler, computed by the process next to it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, Protocol

import msgspec

from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND, Clock, SystemClock, rfc3339, rfc3339_micro
from moorage.base.errors import MoorageError
from moorage.base.rng import Random
from moorage.estimates.answer import StartEstimate, interval_text, record_text
from moorage.estimates.intervals import Interval
from moorage.estimates.run_time_book import RunTimeBook
from moorage.estimates.start_observer import StartObserver
from moorage.forecast.drawing import DrawnEstimate, draw_estimate
from moorage.forecast.start_model import ModelBuilder
from moorage.service.scheduler import Scheduler
from moorage.what_if.answering.messages import START, QuestionFrame, Reply
from moorage.what_if.answering.mirror import Mirror
from moorage.what_if.answering.mirrored_state import MirroredState

_SECONDS_MOST: Final = 5
"""After so long the fork that computes an estimate is ended."""
_FILTERS_SHARE: Final = 0.4
"""Share of the time after which no more Filters are asked."""
_PATIENCE: Final = 5.0
"""The least number of roll-outs may take so many times as long: the process is a nice one."""


class StartBody(msgspec.Struct, frozen=True, kw_only=True):
    """The body of the question.

    Parameters
    ----------
    namespace, name
        The pod.
    seconds
        Time for the answer.
    bins
        Learned run times.
    arrivals
        The pods that came last.
    arrivals_a_second
        How often a pod comes.
    """

    namespace: str
    name: str
    seconds: float
    bins: dict[str, dict[int, float]]
    arrivals: list[Pod]
    arrivals_a_second: float


class Answering(Protocol):
    """The way to the process that answers."""

    async def ask(self, question: Callable[[], bytes]) -> bytes:
        """Return the frame that answers a question."""
        ...


class StartEstimator:
    """Asks for estimates, and keeps the record of them.

    Parameters
    ----------
    scheduler, clock
        The running scheduler, and the time.
    state, process
        The state that the process has a copy of, and the process.
    observer
        What is known about run times, and how often intervals held.
    seconds
        Time for the roll-outs of one answer.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        clock: Clock,
        *,
        state: MirroredState,
        process: Answering,
        observer: StartObserver,
        seconds: float,
    ) -> None:
        self._scheduler = scheduler
        self._clock = clock
        self._state = state
        self._process = process
        self._observer = observer
        self._seconds = seconds

    async def estimate(self, pod: Pod) -> StartEstimate:
        """Return the estimate about a pod that waits; what goes wrong is its sentence."""
        try:
            frame = await self._process.ask(lambda: self._question(pod))
        except MoorageError as error:
            return StartEstimate(sentence=f"No estimate: {error}")
        reply = msgspec.msgpack.decode(frame, type=Reply)
        if reply.code != 200:
            return StartEstimate(sentence=f"No estimate: {reply.body.decode()}")
        return self._shown(pod, msgspec.msgpack.decode(reply.body, type=DrawnEstimate))

    def _question(self, pod: Pod) -> bytes:
        body = StartBody(
            namespace=pod.namespace,
            name=pod.name,
            seconds=self._seconds,
            bins=self._observer.book.as_bins(),
            arrivals=list(self._observer.arrivals),
            arrivals_a_second=self._observer.arrivals_a_second,
        )
        frame = QuestionFrame(
            path=START,
            body=msgspec.msgpack.encode(body),
            moment=self._state.moment(),
            time=rfc3339_micro(self._clock.now_ns()),
            scheduling=self._scheduler.schedules,
            seconds_most=_SECONDS_MOST,
        )
        return msgspec.msgpack.encode(frame)

    def _shown(self, pod: Pod, drawn: DrawnEstimate) -> StartEstimate:
        """Return the estimate for people, and remember its interval."""
        now, record = self._observer.now, self._observer.record
        record.count_overdue(now)
        interval = Interval(now + drawn.low, now + drawn.high)
        shown = interval.widened(record.widening(), least=now)
        record.note_estimate(pod.uid, shown=shown, drawn=interval)
        estimate = StartEstimate(
            sentence="",
            position=drawn.position,
            waits_for=drawn.waits_for,
            must_end=() if shown.is_finite else drawn.must_end,
            unknown_run_times=drawn.unknown,
            roll_outs=drawn.roll_outs,
            outcomes=len(record.outcomes),
            outcomes_in=sum(record.outcomes),
        )
        if shown.is_finite:
            low, high = (rfc3339(round(at * NS_PER_SECOND)) for at in (shown.low, shown.high))
            estimate = msgspec.structs.replace(estimate, earliest=low, latest=high)
        sentence = estimate_sentence(estimate, drawn, shown, now)
        return msgspec.structs.replace(estimate, sentence=sentence)


def estimate_sentence(
    estimate: StartEstimate, drawn: DrawnEstimate, shown: Interval, now: float
) -> str:
    """Return the answer in a sentence or two."""
    if drawn.lacks_members:
        return "Starts when the missing members of its group have come."
    if shown.is_finite:
        text = f"Starts {interval_text(shown, now)} ({estimate.share:.0%} interval)"
        if drawn.waits_for:
            text += f"; the first thing it waits for is the end of {drawn.waits_for}"
        roll_outs = "roll-out" if drawn.roll_outs == 1 else "roll-outs"
        return f"{text}. {record_text(estimate)} Drawn from {drawn.roll_outs} {roll_outs}."
    place = f"it has place {drawn.position} in the queue"
    if not drawn.roll_outs:
        why = "the time for an answer was over before the first roll-out"
    elif drawn.unknown:
        pods = "1 running pod" if drawn.unknown == 1 else f"{drawn.unknown} running pods"
        why = f"nothing is known about the run times of {pods}"
    else:
        why = "it starts in too few roll-outs"
    text = f"When it starts is not known: {why}; {place}"
    if drawn.must_end:
        text += f". One of these has to end: {', '.join(drawn.must_end)}"
    return f"{text}."


def start_answer(mirror: Mirror, frame: QuestionFrame) -> bytes:
    """Return the estimate that a frame asks for, in the process next to the scheduler."""
    body = msgspec.msgpack.decode(frame.body, type=StartBody)
    clock = SystemClock()
    begin_ns = clock.monotonic_ns()

    def over(share: float) -> Callable[[], bool]:
        end_ns = begin_ns + round(share * body.seconds * NS_PER_SECOND)
        return lambda: clock.monotonic_ns() > end_ns

    core, pending = mirror.at_rest(frame.moment)
    target = next((pod for pod in pending if pod.key == (body.namespace, body.name)), None)
    if target is None:
        drawn = DrawnEstimate(low=math.inf, high=math.inf, position=0, unknown=0)
        return msgspec.msgpack.encode(drawn)
    book = RunTimeBook()
    book.load_bins(body.bins)
    builder = ModelBuilder(core, book, now_ns=frame.moment.now_ns, is_over=over(_FILTERS_SHARE))
    model = builder.build(pending, target, body.arrivals, body.arrivals_a_second)
    seed = f"{target.uid} {frame.moment.now_ns}"
    drawn = draw_estimate(model, Random(seed), is_over=over(1.0), is_hopeless=over(_PATIENCE))
    return msgspec.msgpack.encode(drawn)
