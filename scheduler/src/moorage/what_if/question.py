"""The questions what-if and capacity, as a running scheduler answers them over HTTP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

import msgspec

from moorage.base.clock import Clock, rfc3339_micro
from moorage.base.errors import ApiError, UsageError
from moorage.service.questions.question import BodyQuestion, Readable
from moorage.service.scheduler import Scheduler
from moorage.what_if.messages import LIMIT_REACHED, QuestionFrame, Reply
from moorage.what_if.mirrored_state import MirroredState
from moorage.what_if.wire import (
    CAPACITY,
    LIMIT_REASON,
    WHAT_IF,
    CapacityAnswer,
    CapacityBody,
    WhatIfAnswer,
    WhatIfBody,
)

SECONDS_MOST = 30
"""Longest computation of one answer."""
_REASONS = {500: "InternalError", LIMIT_REACHED: LIMIT_REASON}


class Answering(Protocol):
    """The way to the process that answers."""

    async def ask(self, question: Callable[[], bytes]) -> bytes:
        """Return the frame that answers a question."""
        ...


def tried_questions(
    scheduler: Scheduler, clock: Clock, state: MirroredState, process: Answering
) -> list[BodyQuestion]:
    """Return the questions that are tried on a copy of the scheduler's state.

    Parameters
    ----------
    state
        The state that the process has a copy of.
    process
        Answers.
    """

    def asker(path: str, *, only_names: bool = False) -> Callable[[bytes], Awaitable[bytes]]:
        async def ask(body: bytes) -> bytes:
            def question() -> bytes:
                frame = QuestionFrame(
                    path=path,
                    body=body,
                    moment=state.moment(),
                    time=rfc3339_micro(clock.now_ns()),
                    scheduling=scheduler.schedules,
                    seconds_most=SECONDS_MOST,
                    only_names=only_names,
                )
                return msgspec.msgpack.encode(frame)

            return _body_of(msgspec.msgpack.decode(await process.ask(question), type=Reply))

        return ask

    def names(path: str) -> Callable[[bytes], Awaitable[list[Readable]]]:
        ask = asker(path, only_names=True)

        async def names_in_body(body: bytes) -> list[Readable]:
            return msgspec.json.decode(await ask(body), type=list[Readable])

        return names_in_body

    return [
        BodyQuestion(
            path=WHAT_IF,
            summary="What changes would do: which pods start, move, are lost or wait. Nothing is "
            "written; the changes are tried on a copy of the scheduler's state",
            body=WhatIfBody,
            answer=WhatIfAnswer,
            ask=asker(WHAT_IF),
            names=names(WHAT_IF),
        ),
        BodyQuestion(
            path=CAPACITY,
            summary="How many more pods fit, what binds first, and which nodes would place the "
            "pods that wait. Nothing is written",
            body=CapacityBody,
            answer=CapacityAnswer,
            ask=asker(CAPACITY),
            names=names(CAPACITY),
        ),
    ]


def _body_of(reply: Reply) -> bytes:
    if reply.code == 200:
        return reply.body
    text = reply.body.decode()
    if reply.code == 400:
        raise UsageError(text)
    raise ApiError(reply.code, _REASONS[reply.code], text)
