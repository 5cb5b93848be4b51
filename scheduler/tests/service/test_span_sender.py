"""The sender of spans: what it sends, drops and counts. Nothing here depends on durations."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from moorage.observe.traces.span import Span
from moorage.service.process.span_sender import SpanSender


def span(number: int) -> Span:
    return Span(trace_id=1, span_id=number, parent_id=0, name="x", start_ns=0, end_ns=1)


class Collector:
    """A collector that answers when it may."""

    def __init__(self, *, takes: bool = True) -> None:
        self.takes = takes
        self.may = threading.Event()
        self.asked = threading.Event()
        self.got: list[int] = []

    def __call__(self, spans: Sequence[Span]) -> bool:
        self.asked.set()
        self.may.wait()
        if self.takes:
            self.got += [each.span_id for each in spans]
        return self.takes


def test_spans_are_sent_in_batches_and_in_order() -> None:
    collector = Collector()
    collector.may.set()
    sender = SpanSender(collector)
    sender.start()
    sender.queue_spans([span(number) for number in range(1, 1301)])
    sender.close(seconds=60.0)
    assert collector.got == list(range(1, 1301))
    assert sender.counts() == {"sent": 1300, "refused": 0, "dropped": 0}


def test_spans_that_the_collector_refuses_are_counted() -> None:
    collector = Collector(takes=False)
    collector.may.set()
    sender = SpanSender(collector)
    sender.start()
    sender.queue_spans([span(1), span(2)])
    sender.close(seconds=60.0)
    assert sender.counts() == {"sent": 0, "refused": 2, "dropped": 0}


def test_a_collector_that_does_not_answer_holds_up_neither_put_nor_close() -> None:
    collector = Collector()
    sender = SpanSender(collector, spans_max=3, wait_seconds=0.0)
    sender.start()
    sender.queue_spans([span(1)])
    assert collector.asked.wait(60.0)
    sender.queue_spans([span(2), span(3)])
    sender.queue_spans([span(4), span(5)])  # no room for both: none is taken
    assert sender.counts()["dropped"] == 2
    sender.close(seconds=0.0)
    assert sender.counts() == {"sent": 0, "refused": 0, "dropped": 4}
    collector.may.set()
