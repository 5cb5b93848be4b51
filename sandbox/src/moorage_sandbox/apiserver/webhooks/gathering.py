"""Has a call answered with the answers of webhooks: asks them, and has the call answered again.

Place in the flow: `moorage_sandbox.apiserver.lanes` hands each call in here that may meet webhooks.
While a webhook is asked, nothing of the call is under way: no step of the chain, no thread, no
lock. Other calls go on, and the call itself ends in time, with its client or before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Protocol

import msgspec

from moorage.base.aio import sleep
from moorage.base.clock import Clock
from moorage.base.ids import new_uid
from moorage.base.rng import Random
from moorage.kinds.status import StatusError, timed_out
from moorage_sandbox.apiserver.webhooks.answers import (
    Answer,
    Answers,
    AnswersNeeded,
    HookError,
    Question,
    answering_with,
)
from moorage_sandbox.apiserver.wire.render import status_reply
from moorage_sandbox.apiserver.wire.requests import Reply, Request, time_limit_seconds
from moorage_sandbox.apiserver.world import World

# The work of calls in one turn; others wait no longer than for this and one call more.
_TURN_NS: Final = 2_000_000
_CHANGED: Final = (
    "Operation cannot be fulfilled: the object was modified each time before its webhooks had "
    "answered; please try again"
)


class LoopTurns:
    """Lets few calls go on in each turn of the loop, by the time that they take.

    In virtual time no work takes time, so all calls go on in one turn.

    Parameters
    ----------
    clock
        Measures the work.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # When the time of calls in the present turn of the loop ends; None before the first one.
        self._ends_ns: int | None = None

    async def wait(self) -> None:
        """Wait until there is time left in a turn of the loop; the first call never waits."""
        while self._ends_ns is not None and self._clock.monotonic_ns() >= self._ends_ns:
            await sleep(0)
        if self._ends_ns is None:
            self._ends_ns = self._clock.monotonic_ns() + _TURN_NS
            asyncio.get_running_loop().call_soon(self._end_turn)

    def _end_turn(self) -> None:
        self._ends_ns = None


class Sender(Protocol):
    """Sends reviews to webhooks."""

    async def send_review(self, question: Question, body: bytes, seconds: float) -> bytes:
        """Send a review, and return the body of the answer.

        Raises
        ------
        HookError
            No answer, or one that cannot be read.
        """
        ...


class Gathering:
    """Asks webhooks for calls.

    Parameters
    ----------
    world
        The clock.
    rng
        Uids of reviews, and what the objects of calls draw.

    Attributes
    ----------
    sender
        Sends reviews; over HTTPS if it is None.
    """

    def __init__(self, world: World, rng: Random) -> None:
        self._world = world
        self._rng = rng
        self.sender: Sender | None = None
        self._turns = LoopTurns(world.clock)

    async def reply_to(self, request: Request, answer: Callable[[], Awaitable[Reply]]) -> Reply:
        """Have a call answered, as often as it takes to have all answers of webhooks."""
        loop = asyncio.get_running_loop()
        ends_at = loop.time() + time_limit_seconds(request.query)
        answers = Answers(request, self._world.clock, self._rng.getrandbits(63), self.ask_all)
        with answering_with(answers):
            while True:
                # Many webhooks may answer, or fail, at once.
                await self._turns.wait()
                try:
                    return await answer()
                except AnswersNeeded as needed:
                    questions = needed.questions
                pairs = await self.ask_all(questions, ends_at - loop.time())
                if not answers.add_answers(pairs):
                    return status_reply(StatusError(409, "Conflict", _CHANGED))
                if loop.time() >= ends_at:
                    return status_reply(timed_out())

    async def ask_all(
        self, questions: Sequence[Question], seconds: float
    ) -> Sequence[tuple[Question, Answer]]:
        """Ask all webhooks at once, and return the answer to each question."""
        found = await asyncio.gather(*(self._ask(each, seconds) for each in questions))
        return list(zip(questions, found, strict=True))

    async def _ask(self, question: Question, seconds: float) -> Answer:
        uid = new_uid(self._rng)
        review = question.review | {"request": {"uid": uid} | question.review["request"]}
        limit = max(0.0, min(seconds, question.timeout_seconds))
        try:
            body = await self._sender.send_review(question, msgspec.json.encode(review), limit)
        except HookError as error:
            return Answer(uid, failure=str(error))
        return Answer(uid, body)

    @property
    def _sender(self) -> Sender:
        if self.sender is None:
            # The HTTP library is imported only by servers with webhooks, or with a port.
            from moorage_sandbox.apiserver.webhooks.https import HttpsSender

            self.sender = HttpsSender()
        return self.sender
