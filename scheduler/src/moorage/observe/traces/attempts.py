"""Makes the spans of attempts: from the record of an attempt at its end, and from its calls.

While an attempt runs, its trace only notes what no record has: when the extension points ended, and
the calls to the API server and to extenders. The parent of each call is found afterwards, by time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from moorage.base.clock import Clock
from moorage.base.rng import Random
from moorage.observe.plugin_facts import Lap
from moorage.observe.records.record import AttemptRecord
from moorage.observe.traces.span import Attributes, Span

Emit: TypeAlias = Callable[[Sequence[Span]], None]
"""Takes spans that have ended; must return at once."""

MILLION: Final = 1_000_000
_TEXT_MAX: Final = 1000  # a guess: the histogram of reasons of a large cluster is shorter


class Trace:
    """The trace of one attempt, while it runs and for its calls that end later.

    Parameters
    ----------
    rng
        Ids.
    emit
        Takes the calls that end after the attempt.
    """

    __slots__ = ("_emit", "_rng", "calls", "is_over", "laps", "root_id", "step_ends_ns", "trace_id")

    def __init__(self, rng: Random, emit: Emit) -> None:
        self._rng = rng
        self._emit = emit
        self.trace_id = _id(rng, 128)
        self.root_id = _id(rng, 64)
        self.laps: Sequence[Lap] = ()
        """The extension points of the deciding part, in wall-clock nanoseconds."""
        self.step_ends_ns: list[int] = []
        """When each step of the record ended, wall-clock nanoseconds."""
        self.calls: list[Span] = []
        """The calls that have ended; their parents are not yet known."""
        self.is_over = False

    def next_id(self) -> int:
        """Return the id of a new span."""
        return _id(self._rng, 64)

    def parent_text(self, span_id: int) -> str:
        """Return the ``traceparent`` header that makes a span the parent of another program's.

        Notes
        -----
        W3C Trace Context, version 00, with the flag that says that the trace is sampled.
        """
        return f"00-{self.trace_id:032x}-{span_id:016x}-01"

    def called(
        self,
        span_id: int,
        name: str,
        attributes: Attributes,
        *,
        start_ns: int,
        end_ns: int,
        failure: str | None,
    ) -> None:
        """Note a call that has ended."""
        span = Span(
            trace_id=self.trace_id,
            span_id=span_id,
            parent_id=self.root_id,
            name=name,
            start_ns=start_ns,
            end_ns=end_ns,
            attributes=attributes,
            failure=failure,
            is_call=True,
        )
        if self.is_over:
            self._emit((span,))
        else:
            self.calls.append(span)

    def span(
        self,
        name: str,
        *,
        start_ns: int,
        end_ns: int,
        attributes: Attributes,
        failure: str | None = None,
        parent_id: int | None = None,
    ) -> Span:
        """Return a new span of this trace, below the span of the attempt unless told otherwise."""
        return Span(
            trace_id=self.trace_id,
            span_id=self.next_id(),
            parent_id=self.root_id if parent_id is None else parent_id,
            name=name,
            start_ns=start_ns,
            end_ns=end_ns,
            attributes=attributes,
            failure=failure,
        )


class Traces:
    """The traces of the attempts that are sampled.

    Parameters
    ----------
    clock
        The time of spans.
    rng
        Ids, and the choice of attempts. Two processes must not have the same.
    rate_per_million
        How many of a million attempts are traced.
    emit
        Takes the spans.
    counts
        Returns how many spans were taken, by what became of them. Also an attribute.
    """

    def __init__(
        self,
        clock: Clock,
        rng: Random,
        *,
        rate_per_million: int,
        emit: Emit,
        counts: Callable[[], Mapping[str, int]] = dict,
    ) -> None:
        self.counts = counts
        self.clock = clock
        self._rng = rng
        self._rate = rate_per_million
        self._emit = emit
        # Attempts under way, by the uid of their pod; None for an attempt that is not sampled.
        self._open: dict[str, Trace | None] = {}

    def begun(self, uid: str) -> Trace | None:
        """Return the trace of the attempt that begins with a pod; None if it is not sampled."""
        sampled = self._rng.randrange(MILLION) < self._rate
        trace = self._open[uid] = Trace(self._rng, self._emit) if sampled else None
        return trace

    def trace_of(self, uid: str) -> Trace | None:
        """Return the trace of a pod's attempt that is under way; None if there is none."""
        return self._open.get(uid)

    def decided(self, uid: str, laps: Callable[[], Sequence[Lap]]) -> None:
        """Note that the deciding part of an attempt is over.

        Parameters
        ----------
        uid
            The pod.
        laps
            Returns the extension points; called for sampled attempts only.
        """
        trace = self._open[uid] if uid in self._open else self.begun(uid)
        if trace is None:
            return
        ahead_ns = self.clock.now_ns() - self.clock.monotonic_ns()
        trace.laps = [
            (point, code, start_ns + ahead_ns, end_ns + ahead_ns)
            for point, code, start_ns, end_ns in laps()
        ]

    def stepped(self, uid: str) -> None:
        """Note that a step after the decision has ended, which the record has as well."""
        trace = self._open.get(uid)
        if trace is not None:
            trace.step_ends_ns.append(self.clock.now_ns())

    def ended(self, record: AttemptRecord) -> None:
        """Hand out the spans of an attempt that has ended."""
        trace = self._open.pop(record.uid, None)
        if trace is not None:
            trace.is_over = True
            self._emit(spans_of(record, trace))

    def dropped(self, uid: str) -> None:
        """Forget an attempt that ends without a record."""
        self._open.pop(uid, None)


def spans_of(record: AttemptRecord, trace: Trace) -> list[Span]:
    """Return the spans of an attempt that has ended, the span of the whole attempt first."""
    decided_from_ns = record.at_ns - record.took_ns
    deciding = trace.span(
        "decide",
        start_ns=decided_from_ns,
        end_ns=record.at_ns,
        attributes={
            "moorage.nodes.evaluated": record.evaluated,
            "moorage.nodes.feasible": record.feasible,
        },
        failure=record.failure.message if record.failure.outcome == "error" else None,
    )
    points = [
        trace.span(
            point,
            start_ns=start_ns,
            end_ns=end_ns,
            attributes={"moorage.status": code},
            parent_id=deciding.span_id,
        )
        for point, code, start_ns, end_ns in trace.laps
    ]
    steps = [
        trace.span(
            step.name,
            start_ns=end_ns - step.took_ns,
            end_ns=end_ns,
            attributes={
                "moorage.status": step.code,
                **_attribute_unless_empty("moorage.plugin", step.plugin),
            },
            failure=step.code if step.code == "Error" else None,
        )
        for step, end_ns in zip(record.steps, trace.step_ends_ns, strict=True)
    ]
    around = (deciding, *steps)
    calls = [msgspec.structs.replace(each, parent_id=_parent(each, around)) for each in trace.calls]
    return [_whole(record, trace), deciding, *points, *steps, *calls]


def _whole(record: AttemptRecord, trace: Trace) -> Span:
    """Return the span of the whole attempt."""
    namespace, name = record.key
    failed = record.failure.outcome == "error" or (bool(record.node) and record.end != "bound")
    return Span(
        trace_id=trace.trace_id,
        span_id=trace.root_id,
        parent_id=0,
        name="schedule pod",
        start_ns=record.at_ns - record.took_ns,
        end_ns=record.ended_ns,
        attributes={
            "k8s.namespace.name": namespace,
            "k8s.pod.name": name,
            "k8s.pod.uid": record.uid,
            **_attribute_unless_empty("k8s.node.name", record.node),
            "moorage.profile": record.profile,
            "moorage.attempt": record.attempt,
            "moorage.end": record.end,
            **_attribute_unless_empty("moorage.message", record.failure.message[:_TEXT_MAX]),
            **_attribute_unless_empty("moorage.nominated_node", record.failure.nominated or ""),
        },
        failure=record.failure.message[:_TEXT_MAX] if failed else None,
    )


def _attribute_unless_empty(name: str, value: str) -> dict[str, str]:
    return {name: value} if value else {}


def _parent(call: Span, around: Sequence[Span]) -> int:
    """Return the id of the part that awaited a call; the whole attempt where there is none.

    The end of the call decides: parts follow each other, and each ends after the calls it awaits.
    The beginning of a part is computed from its duration, and may be some microseconds too late.
    """
    for span in around:
        if span.start_ns <= call.end_ns <= span.end_ns:
            return span.span_id
    return call.parent_id


def _id(rng: Random, bits: int) -> int:
    return rng.getrandbits(bits) or 1  # 0 means no id
