"""Who may read a path: paths and groups that always may, and the reviews that are kept."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage.base.errors import MoorageError, UsageError
from moorage.base.rng import Streams
from moorage.client.transport import Answer
from moorage.observe.access import ReviewFacts
from moorage.service.serving.authorization import AlwaysAllowed, Authorizer, Decision
from moorage.service.serving.callers import ANONYMOUS, MASTERS, Caller
from moorage.service.serving.reviews import ACCESS_REVIEW, Reviewer
from scheduler.tests.client.fakes import ScriptedTransport

JANE = Caller("jane", "u1", ("dev",), {"scopes": ("a", "b")})


@pytest.mark.parametrize(
    ("paths", "path", "is_open"),
    [
        pytest.param(("/healthz",), "/healthz", True, id="a path of the list"),
        pytest.param(("healthz",), "/healthz", True, id="a path without its leading slash"),
        pytest.param(("/healthz",), "/healthz/ping", False, id="a path below one of the list"),
        pytest.param(("/healthz",), "/healthzz", False, id="a path that begins alike"),
        pytest.param(("/metrics*",), "/metrics/resources", True, id="a star stands for any rest"),
        pytest.param(("/metrics/*",), "/metrics", False, id="a star after the slash"),
        pytest.param(("/*",), "/anything", True, id="a star alone"),
        pytest.param((), "/healthz", False, id="an empty list"),
        pytest.param((), "/", False, id="the root of an empty list"),
    ],
)
def test_the_open_paths_are_read_without_a_review(
    paths: tuple[str, ...], path: str, is_open: bool
) -> None:
    assert (path in AlwaysAllowed(paths)) is is_open


def test_a_star_inside_a_path_is_refused() -> None:
    wanted = "--authorization-always-allow-paths: only trailing * allowed in a*/b"
    with pytest.raises(UsageError) as caught:
        AlwaysAllowed(["/a*/b"])
    assert str(caught.value) == wanted


def answered(**status: Any) -> Answer:
    """Return the answer of a review."""
    return Answer(201, {}, msgspec.json.encode({"kind": "SubjectAccessReview", "status": status}))


def failed(code: int, reason: str) -> Answer:
    """Return a Status that tells of a failure."""
    return Answer(code, {}, msgspec.json.encode({"code": code, "reason": reason, "message": "no"}))


class Asking:
    """An authorizer that asks a scripted server."""

    def __init__(self, *script: Any, seconds: int = 10) -> None:
        self.clock = ManualClock()
        self.transport = ScriptedTransport(*script)
        self.facts = ReviewFacts()
        reviewer = Reviewer(
            self.transport,
            ACCESS_REVIEW,
            facts=self.facts,
            clock=self.clock,
            rng=Streams(1).stream("reviews"),
        )
        self.authorizer = Authorizer(
            AlwaysAllowed(["/healthz"]),
            reviewer,
            clock=self.clock,
            allowed_ttl_ns=seconds * NS_PER_SECOND,
            refused_ttl_ns=2 * seconds * NS_PER_SECOND,
        )

    async def decide(self, caller: Caller = JANE, path: str = "/metrics") -> Decision:
        return await self.authorizer.authorize_call(caller, "get", path)


async def test_a_review_asks_with_everything_known_about_the_caller() -> None:
    asking = Asking(answered(allowed=True, reason="by a role"))
    assert await asking.decide() == Decision(True, "by a role")
    (call,) = asking.transport.calls
    assert (call.method, call.path) == (
        "POST",
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
    )
    assert msgspec.json.decode(call.whole_body) == {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": "jane",
            "uid": "u1",
            "groups": ["dev"],
            "extra": {"scopes": ["a", "b"]},
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
        },
    }


async def test_masters_and_open_paths_need_no_review() -> None:
    asking = Asking()
    assert await asking.decide(Caller("root", groups=(MASTERS,))) == Decision(True)
    assert await asking.decide(ANONYMOUS, "/healthz") == Decision(True)
    assert asking.transport.calls == []


@pytest.mark.parametrize(
    ("status", "decision", "seconds"),
    [
        pytest.param({"allowed": True}, Decision(True), 10, id="a yes for ten seconds"),
        pytest.param({"allowed": False}, Decision(False), 20, id="a no for twenty seconds"),
        pytest.param(
            {"denied": True, "reason": "never"},
            Decision(False, "never", True),
            20,
            id="a denial for twenty seconds",
        ),
    ],
)
async def test_a_review_is_kept_as_long_as_the_flags_say(
    status: dict[str, Any], decision: Decision, seconds: int
) -> None:
    asking = Asking(answered(**status), answered(**status))
    assert await asking.decide() == decision
    asking.clock.advance(seconds - 1)
    assert await asking.decide() == decision
    assert len(asking.transport.calls) == 1
    asking.clock.advance(1)
    assert await asking.decide() == decision
    assert len(asking.transport.calls) == 2


async def test_another_path_and_another_caller_are_reviewed_anew() -> None:
    asking = Asking(*[answered(allowed=True)] * 3)
    await asking.decide()
    await asking.decide(path="/configz")
    await asking.decide(Caller("jane", "u2", ("dev",), JANE.extra))
    assert len(asking.transport.calls) == 3


async def test_reviews_of_very_long_paths_are_not_kept() -> None:
    asking = Asking(*[answered(allowed=True)] * 2)
    for _ in range(2):
        await asking.decide(path="/" + "x" * 10_000)
    assert len(asking.transport.calls) == 2


async def test_an_answer_that_contradicts_itself_refuses() -> None:
    asking = Asking(answered(allowed=True, denied=True))
    with pytest.raises(MoorageError, match="both allow and deny"):
        await asking.decide()


@pytest.mark.parametrize(
    ("failure", "tries"),
    [
        pytest.param(failed(500, "InternalError"), 5, id="an internal error is tried five times"),
        pytest.param(failed(504, "Timeout"), 5, id="a timeout"),
        pytest.param(failed(429, "TooManyRequests"), 5, id="too many requests"),
        pytest.param(failed(403, "Forbidden"), 1, id="a right that is missing is not tried again"),
        pytest.param(failed(503, "ServiceUnavailable"), 1, id="a server that is away"),
        pytest.param(Answer(201, {}, b"{}"), 1, id="an answer without a status"),
        pytest.param(Answer(201, {}, b"<html>"), 1, id="an answer that is no JSON"),
        pytest.param(answered(allowed="yes"), 1, id="an answer of another type"),
    ],
)
async def test_failures_refuse_and_are_not_kept(
    failure: Answer, tries: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    monkeypatch.setattr("moorage.base.aio.sleep", sleep)
    asking = Asking(*[failure] * tries, answered(allowed=True))
    with pytest.raises(MoorageError):
        await asking.decide()
    assert len(asking.transport.calls) == tries
    assert [0.5 * 1.5**n <= wait <= 0.6 * 1.5**n for n, wait in enumerate(waits)] == [True] * (
        tries - 1
    )
    assert await asking.decide() == Decision(True)
    assert sum(asking.facts.answers.values()) == tries + 1


async def test_without_a_server_to_ask_only_open_paths_are_allowed() -> None:
    authorizer = Authorizer(
        AlwaysAllowed(["/healthz"]), clock=ManualClock(), allowed_ttl_ns=0, refused_ttl_ns=0
    )
    assert await authorizer.authorize_call(JANE, "get", "/metrics") == Decision(False)
    assert await authorizer.authorize_call(JANE, "get", "/healthz") == Decision(True)
