"""The questions what-if and capacity, as a running scheduler answers them over HTTP."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Protocol

import msgspec

from moorage.api.resources import PODS
from moorage.base.clock import Clock, rfc3339_micro
from moorage.base.errors import ApiError, UsageError
from moorage.client.requests import Selection
from moorage.client.writes import Client
from moorage.service.questions.question import BodyQuestion, Readable
from moorage.service.scheduler import Scheduler
from moorage.virtual.objects import Key, any_empty_dir
from moorage.what_if.answering.messages import LIMIT_REACHED, QuestionFrame, Reply
from moorage.what_if.answering.mirrored_state import MirroredState
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
            drained = _drained(body) if path == WHAT_IF and not only_names else ()
            local = await _with_local_data(scheduler.parts.client, drained)

            def question() -> bytes:
                frame = QuestionFrame(
                    path=path,
                    body=body,
                    moment=state.moment(),
                    time=rfc3339_micro(clock.now_ns()),
                    scheduling=scheduler.schedules,
                    seconds_most=SECONDS_MOST,
                    only_names=only_names,
                    with_local_data=local,
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


class _AnyChange(msgspec.Struct, frozen=True):
    change: str = ""
    name: str = ""


class _Changes(msgspec.Struct, frozen=True):
    changes: tuple[_AnyChange, ...] = ()


def _drained(body: bytes) -> tuple[str, ...]:
    """Return the nodes that a body drains; none of a body that the process will refuse."""
    try:
        changes = msgspec.json.decode(body, type=_Changes).changes
    except msgspec.MsgspecError:
        return ()
    return tuple(dict.fromkeys(each.name for each in changes if each.change == "drain"))


async def _with_local_data(client: Client, nodes: Iterable[str]) -> tuple[Key, ...]:
    """Read which pods on nodes have a volume of kind emptyDir: a scheduler drops such volumes."""
    keys: list[Key] = []
    for name in nodes:
        on_node = Selection(field_selector=f"spec.nodeName={name}")
        listed: Any = await client.list(PODS, on_node)
        metadata = (each["metadata"] for each in listed["items"] if any_empty_dir(each))
        keys += [(each["namespace"], each["name"]) for each in metadata]
    return tuple(keys)


def _body_of(reply: Reply) -> bytes:
    if reply.code == 200:
        return reply.body
    text = reply.body.decode()
    if reply.code == 400:
        raise UsageError(text)
    raise ApiError(reply.code, _REASONS[reply.code], text)
