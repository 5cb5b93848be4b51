"""Bearer tokens: what is asked, what is kept, and what calls share. Left out: the wire."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage.base.errors import RefusedError
from moorage.base.rng import Streams
from moorage.client.transport import Answer, Call
from moorage.observe.access import AccessFacts
from moorage.service.serving.callers import Caller, UnauthenticatedError
from moorage.service.serving.reviews import TOKEN_REVIEW, Reviewer
from moorage.service.serving.tokens import TokenAuthenticator
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.client.fakes import ScriptedTransport

USER = {"username": "jane", "uid": "u1", "groups": ["dev"], "extra": {"scopes": ["a"]}}
JANE = Caller("jane", "u1", ("dev",), {"scopes": ("a",)})
YES = {"authenticated": True, "user": USER}


def reviewed(**status: Any) -> Answer:
    """Return the answer of a review."""
    return Answer(201, {}, msgspec.json.encode({"kind": "TokenReview", "status": status}))


class Asking:
    """Tokens reviewed by a scripted server, and kept for ten seconds."""

    def __init__(self, transport: Any, clock: ManualClock | None = None) -> None:
        self.clock = clock or ManualClock()
        self.transport = transport
        self.facts = AccessFacts()
        reviewer = Reviewer(
            transport,
            TOKEN_REVIEW,
            facts=self.facts.token_reviews,
            clock=self.clock,
            rng=Streams(1).stream("reviews"),
        )
        self.tokens = TokenAuthenticator(
            reviewer, ttl_ns=10 * NS_PER_SECOND, clock=self.clock, facts=self.facts
        )


async def test_a_review_asks_about_the_token_and_tells_its_user() -> None:
    asking = Asking(ScriptedTransport(reviewed(**YES)))
    assert await asking.tokens.caller("secret") == JANE
    (call,) = asking.transport.calls
    assert (call.method, call.path) == ("POST", "/apis/authentication.k8s.io/v1/tokenreviews")
    assert msgspec.json.decode(call.whole_body) == {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "TokenReview",
        "spec": {"token": "secret"},
    }


@pytest.mark.parametrize(
    ("answer", "kept", "fetch"),
    [
        pytest.param(reviewed(**YES), True, "ok", id="a yes is kept"),
        pytest.param(reviewed(authenticated=False), True, "ok", id="a no is kept"),
        pytest.param(
            reviewed(authenticated=False, error="it has expired"),
            False,
            "error",
            id="an error is not kept",
        ),
        pytest.param(RefusedError("gone"), False, "error", id="a server that is gone is not kept"),
    ],
)
async def test_answers_are_kept_for_ten_seconds_and_errors_not(
    answer: Any, kept: bool, fetch: str
) -> None:
    asking = Asking(ScriptedTransport(*[answer] * 3))
    found = []
    for seconds in (0, 9, 1):
        asking.clock.advance(seconds)
        try:
            found.append(str(await asking.tokens.caller("secret")))
        except UnauthenticatedError as error:
            found.append(str(error))
    assert len(set(found)) == 1
    reviews = 2 if kept else 3
    assert len(asking.transport.calls) == reviews
    assert asking.facts.token_cache == {"hit": 3 - reviews, "miss": reviews}
    assert asking.facts.token_fetches == {fetch: reviews}


class Held:
    """A server that answers only once it is told to."""

    def __init__(self, answer: Answer | Exception) -> None:
        self.calls: list[Call] = []
        self._answer = answer
        self._go = asyncio.Event()

    async def request(self, call: Call) -> Answer:
        self.calls.append(call)
        await self._go.wait()
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer

    async def go(self) -> None:
        self._go.set()


async def test_calls_with_the_same_token_share_one_review() -> None:
    held = Held(reviewed(**YES))
    tokens = Asking(held).tokens
    names = ["secret"] * 5 + ["other"]
    # All calls have begun when the last of these coroutines runs.
    *found, _ = await asyncio.gather(*(tokens.caller(name) for name in names), held.go())
    assert found == [JANE] * 6
    assert len(held.calls) == 2


async def test_a_shared_review_that_fails_refuses_all_who_wait_for_it() -> None:
    held = Held(RefusedError("gone"))
    tokens = Asking(held).tokens
    calls = (tokens.caller("secret") for _ in range(3))
    *found, _ = await asyncio.gather(*calls, held.go(), return_exceptions=True)
    assert [type(each) for each in found] == [UnauthenticatedError] * 3
    assert len(held.calls) == 1


def test_a_server_that_never_answers_refuses_after_ten_seconds() -> None:
    clock = ManualClock()

    async def main() -> None:
        asking = Asking(Held(reviewed(**YES)), clock)
        began_ns = clock.monotonic_ns()
        with pytest.raises(UnauthenticatedError, match="no answer in 10 s"):
            await asking.tokens.caller("secret")
        assert clock.monotonic_ns() - began_ns == 10 * NS_PER_SECOND

    run_virtual(main(), clock)
