"""A transport that counts its calls."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.client.transport import Answer, Call, LineStream, Transport
from moorage.observe.calls import CallFacts


class MeteredTransport:
    """Reports each call that is answered at once; a watch has no end to report.

    Parameters
    ----------
    inner
        Carries the calls.
    facts
        Gets the reports.
    clock
        For durations.
    """

    def __init__(self, inner: Transport, facts: CallFacts, clock: Clock) -> None:
        self._inner = inner
        self._facts = facts
        self._clock = clock

    async def request(self, call: Call) -> Answer:
        """Send a call and read the whole answer."""
        begin_ns = self._clock.monotonic_ns()
        code: int | None = None
        received = 0
        try:
            answer = await self._inner.request(call)
            code, received = answer.status, len(answer.body)
        finally:
            seconds = (self._clock.monotonic_ns() - begin_ns) / NS_PER_SECOND
            sent = len(call.whole_body)
            self._facts.answered(call.method, code, seconds, sent=sent, received=received)
        return answer

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        """Open a stream."""
        return self._inner.stream(call)

    async def close(self) -> None:
        """Close the transport inside."""
        await self._inner.close()
