"""A transport that notes the calls of traced attempts, and sends each one its ``traceparent``.

The attempt under way is told by `TRACE`, which each task has for itself. So the verbs and the
plugins between an attempt and its calls need not know of traces.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from typing import Final, Protocol

import msgspec

from moorage.base.clock import Clock
from moorage.client.transport import Answer, Call, LineStream, Transport

_FAILED: Final = 400


class CallTrace(Protocol):
    """The trace of the attempt on whose behalf calls are made."""

    def next_id(self) -> int:
        """Return the id of a new span."""
        ...

    def parent_text(self, span_id: int) -> str:
        """Return the ``traceparent`` header of a call."""
        ...

    def called(
        self,
        span_id: int,
        name: str,
        attributes: Mapping[str, str | int],
        *,
        start_ns: int,
        end_ns: int,
        failure: str | None,
    ) -> None:
        """Note a call that has ended; times in wall-clock nanoseconds."""
        ...


TRACE: Final[ContextVar[CallTrace | None]] = ContextVar("trace", default=None)
"""The trace that the calls of this task belong to; None for none."""


class TracedTransport:
    """Notes the calls of traced attempts; carries every other call unchanged.

    Parameters
    ----------
    inner
        Carries the calls.
    clock
        The time of spans.
    name
        The program that is called, first word of the spans' names.
    attributes
        Attributes of each span.
    """

    def __init__(
        self,
        inner: Transport,
        clock: Clock,
        *,
        name: str,
        attributes: Mapping[str, str | int] | None = None,
    ) -> None:
        self._inner = inner
        self._clock = clock
        self._name = name
        self._attributes = attributes or {}

    async def request(self, call: Call) -> Answer:
        """Send a call and read the whole answer."""
        trace = TRACE.get()
        if trace is None:
            return await self._inner.request(call)
        span_id, start_ns = trace.next_id(), self._clock.now_ns()
        parent = ("traceparent", trace.parent_text(span_id))
        code, failure = 0, ""
        try:
            answer = await self._inner.request(
                msgspec.structs.replace(call, headers=(*call.headers, parent))
            )
            code = answer.status
        except BaseException as error:
            # The class alone: the text of an error may quote an address with a password.
            failure = type(error).__name__
            raise
        finally:
            trace.called(
                span_id,
                f"{self._name} {call.method}",
                {
                    **self._attributes,
                    "http.request.method": call.method,
                    "url.path": call.path,
                    **({"http.response.status_code": code} if code else {}),
                    **({"error.type": failure} if failure else {}),
                },
                start_ns=start_ns,
                end_ns=self._clock.now_ns(),
                failure=(failure or f"HTTP {code}") if failure or code >= _FAILED else None,
            )
        return answer

    def stream(self, call: Call) -> AbstractAsyncContextManager[LineStream]:
        """Open a stream; streams belong to no attempt."""
        return self._inner.stream(call)

    async def close(self) -> None:
        """Close the transport inside."""
        await self._inner.close()
