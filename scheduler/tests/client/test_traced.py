"""Calls of traced attempts: the header that they carry, and the span that is noted of each."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager

import pytest

from moorage.base.clock import ManualClock
from moorage.base.errors import TransportError
from moorage.base.rng import Streams
from moorage.client.traced import TRACE, TracedTransport
from moorage.client.transport import Answer, Call, LineStream
from moorage.observe.traces.attempts import Trace
from moorage.observe.traces.span import Span


class Far:
    """A server that answers after a millisecond, with a code or an error."""

    def __init__(self, clock: ManualClock, answer: int | Exception) -> None:
        self.clock, self.answer = clock, answer
        self.headers: list[tuple[tuple[str, str], ...]] = []

    async def request(self, call: Call) -> Answer:
        self.headers.append(call.headers)
        self.clock.advance(0.001)
        if isinstance(self.answer, Exception):
            raise self.answer
        return Answer(self.answer, {}, b"")

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        raise AssertionError("not called")

    async def close(self) -> None:
        pass


def called(answer: int | Exception, *, traced: bool = True) -> tuple[Far, list[Span]]:
    clock = ManualClock()
    far = Far(clock, answer)
    trace = Trace(Streams(1).stream("t"), lambda spans: None)
    transport = TracedTransport(far, clock, name="API", attributes={"server.address": "h"})

    async def main() -> None:
        TRACE.set(trace if traced else None)
        await transport.request(Call("POST", "/a/b", (("token", "secret"),), b"{}"))

    try:
        asyncio.run(main())
    except TransportError:
        assert isinstance(answer, TransportError)
    return far, trace.calls


@pytest.mark.parametrize(
    ("answer", "failure", "more"),
    [
        pytest.param(201, None, {"http.response.status_code": 201}, id="success"),
        pytest.param(409, "HTTP 409", {"http.response.status_code": 409}, id="an error answer"),
        pytest.param(
            TransportError("https://user:secret@h: silent"),
            "TransportError",
            {"error.type": "TransportError"},
            id="no answer: the error's text may quote a password and is left out",
        ),
    ],
)
def test_a_call_carries_its_own_span_and_is_noted(
    answer: int | Exception, failure: str | None, more: dict[str, object]
) -> None:
    far, (span,) = called(answer)
    assert far.headers == [(("traceparent", f"00-{span.trace_id:032x}-{span.span_id:016x}-01"),)]
    assert (span.name, span.failure, span.is_call) == ("API POST", failure, True)
    assert span.end_ns - span.start_ns == 1_000_000
    assert span.attributes == {
        "server.address": "h",
        "http.request.method": "POST",
        "url.path": "/a/b",
        **more,
    }


def test_a_call_outside_of_traced_attempts_is_carried_unchanged() -> None:
    far, spans = called(200, traced=False)
    assert far.headers == [()]
    assert spans == []


def test_a_call_that_ends_after_its_attempt_is_handed_out_by_itself() -> None:
    spans: list[Span] = []
    trace = Trace(Streams(1).stream("t"), spans.extend)
    trace.is_over = True
    trace.called(5, "API PATCH", {}, start_ns=1, end_ns=2, failure=None)
    assert [(each.span_id, each.parent_id) for each in spans] == [(5, trace.root_id)]
    assert trace.calls == []
