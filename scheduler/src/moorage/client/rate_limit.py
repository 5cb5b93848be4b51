"""A client-side rate limit around any transport, for configurations that ask for one.

``http_transport.open_transport`` adds it when ``clientConnection.qps`` is set. Unset means no limit
here: the server's own 429 and Retry-After are obeyed instead.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager

from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.client.transport import Answer, Call, CallListener, LineStream, Transport


class RateLimitedTransport:
    """Lets calls through at a steady rate, with a burst saved up while idle.

    Parameters
    ----------
    inner
        Carries the calls that are let through.
    qps
        Calls per second in the long run, more than 0.
    burst
        Most calls at once, at least 1.
    listener
        Takes reports of how long each call waited.

    Notes
    -----
    A token bucket as kubernetes v1.36 client-go util/flowcontrol/throttle.go; calls are let
    through in the order they came. Opening a watch is a call, its streamed lines are not.
    """

    def __init__(
        self,
        inner: Transport,
        *,
        qps: float,
        burst: int,
        clock: Clock,
        listener: CallListener | None = None,
    ) -> None:
        assert qps > 0, "no limit means no limiter"
        self._inner = inner
        self._clock = clock
        self._listener = listener
        self._interval_ns = NS_PER_SECOND / qps
        self._saved_ns = (max(1, burst) - 1) * self._interval_ns
        # The time when the tokens taken so far would all have been made, one after the other. A
        # call may go ahead while that time is no further off than a burst takes.
        self._free_ns = float(clock.monotonic_ns())

    async def request(self, call: Call) -> Answer:
        """Send a call when it is its turn."""
        await self._turn(call)
        return await self._inner.request(call)

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        """Open a stream when it is its turn."""
        return self._stream(call)

    async def close(self) -> None:
        """Close the transport inside."""
        await self._inner.close()

    @asynccontextmanager
    async def _stream(self, call: Call) -> AsyncIterator[LineStream]:
        await self._turn(call)
        async with self._inner.stream(call) as stream:
            yield stream

    async def _turn(self, call: Call) -> None:
        """Take a token; wait until the token would have been made."""
        now_ns = self._clock.monotonic_ns()
        self._free_ns = max(self._free_ns, now_ns) + self._interval_ns
        wait_ns = self._free_ns - self._interval_ns - self._saved_ns - now_ns
        if wait_ns > 0:
            await aio.sleep(wait_ns / NS_PER_SECOND)
        if self._listener is not None:
            waited_ns = self._clock.monotonic_ns() - now_ns
            self._listener.call_delayed(call.method, waited_ns / NS_PER_SECOND)
