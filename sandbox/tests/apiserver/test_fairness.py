"""Turns of users, and how many calls each may have under way."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack

import msgspec
import pytest

from moorage.base.aio import TaskOwner, sleep
from moorage.kinds.status import StatusError
from moorage_sandbox.apiserver.wire.fairness import (
    CALLS_MAX,
    CALLS_OF_USER_MAX,
    FairMutex,
    Fairness,
    FairQueue,
)
from moorage_sandbox.apiserver.wire.requests import Request, User

PODS = "/api/v1/pods"
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/a"


def call(user: str, path: str = PODS, **query: str) -> Request:
    return Request(method="GET", path=path, query=tuple(query.items()), user=User(user))


async def _order(calls: list[Request]) -> list[str]:
    """Return the users in the order of their turns when all calls come at once."""
    fairness, tasks = Fairness(), TaskOwner()
    order: list[str] = []

    async def one(each: Request) -> None:
        await fairness.turn(each)
        assert each.user is not None
        order.append(each.user.name + ("*" if each.path == LEASE else ""))

    waiting = [tasks.spawn(one(each), name="call") for each in calls]
    await asyncio.gather(*waiting)
    return order


async def test_few_calls_are_answered_in_order_of_arrival():
    assert await _order([call(user) for user in "abcab"]) == list("abcab")


async def test_a_user_with_many_calls_waits_for_one_with_few():
    order = await _order([call("many") for _ in range(100)] + [call("few"), call("few")])
    # Eight are answered before anybody waits; from then on it is turn and turn about.
    assert order[:12] == ["many"] * 9 + ["few", "many", "few"]


async def test_small_calls_have_their_turns_at_once_and_then_wait_like_all_others():
    fairness = Fairness()
    turns = [fairness.turn_at_once(call("a")) for _ in range(34)]
    assert turns[:32] == [None] * 32  # as long as eight other calls
    left = [each for each in turns if each is not None]
    await asyncio.gather(*left, fairness.turn(call("b")))
    assert [fairness.turn_at_once(call("a")) for _ in range(2)] == [None, None]


async def test_a_user_with_many_small_calls_waits_for_one_with_few():
    fairness = Fairness()
    order: list[str] = []
    for name in ["many"] * 100 + ["few"]:
        turn = fairness.turn_at_once(call(name))
        if turn is not None:
            turn.add_done_callback(lambda _turn, name=name: order.append(name))  # type: ignore[misc]
    await fairness.turn(call("last"))
    assert order[:2] == ["many", "few"]


async def test_calls_about_leases_come_first_and_do_not_starve_other_calls():
    order = await _order([call("a")] * 60 + [call("b", LEASE)] * 60)
    assert order[8:24] == (["b*"] * 4 + ["a"] * 4) * 2
    assert sorted(order) == ["a"] * 60 + ["b*"] * 60


async def test_health_and_watches_are_never_held_back():
    fairness = Fairness()
    for _ in range(50):
        await fairness.turn(call("a", "/readyz"))
        await fairness.turn(call("a", watch="true"))
    with ExitStack() as stack:
        for _ in range(3000):
            stack.enter_context(fairness.under_way(call("a", watch="1")))
            stack.enter_context(fairness.under_way(call("a", "/livez")))


@pytest.mark.parametrize(
    "avoiding",
    [
        pytest.param(call("a", "/openapi/v2", watch="1"), id="a description that is watched"),
        pytest.param(call("a", "/readyzoo"), id="a path that begins as a health check does"),
        pytest.param(
            Request(method="POST", path="/readyz", user=User("a")), id="a health check that writes"
        ),
        pytest.param(
            msgspec.structs.replace(call("a", watch="1"), headers={"content-length": "3000000"}),
            id="a watch with a body",
        ),
        pytest.param(
            msgspec.structs.replace(call("a", "/readyz"), headers={"transfer-encoding": "chunked"}),
            id="a health check with a body",
        ),
    ],
)
def test_a_call_that_resembles_a_watch_or_health_check_is_limited_too(avoiding: Request):
    fairness = Fairness()
    with ExitStack() as stack:
        for _ in range(CALLS_OF_USER_MAX):
            stack.enter_context(fairness.under_way(avoiding))
        assert _refused(fairness, avoiding)


def _refused(fairness: Fairness, each: Request) -> bool:
    try:
        with fairness.under_way(each):
            return False
    except StatusError as error:
        told = (error.code, error.reason, (error.details or {})["retryAfterSeconds"])
        return told == (429, "TooManyRequests", 1)


def test_the_concurrent_calls_of_a_user_are_bounded():
    fairness = Fairness()
    with ExitStack() as stack:
        for _ in range(CALLS_OF_USER_MAX):
            stack.enter_context(fairness.under_way(call("a")))
        assert _refused(fairness, call("a"))
        assert not _refused(fairness, call("a", LEASE))
        assert not _refused(fairness, call("b"))
    assert not _refused(fairness, call("a"))


def test_users_share_the_total_bound_of_calls_equally():
    fairness = Fairness()
    with ExitStack() as stack:
        for user in "ab":
            for _ in range(CALLS_MAX // 2):
                stack.enter_context(fairness.under_way(call(user)))
        assert [_refused(fairness, call(user)) for user in "abc"] == [True, True, False]
        for _ in range(CALLS_MAX // 3):
            stack.enter_context(fairness.under_way(call("c")))
        assert [_refused(fairness, call(user)) for user in "abcd"] == [True, True, True, False]


async def test_the_turn_of_a_cancelled_call_passes_to_the_next_call():
    mutex, tasks = FairMutex(), TaskOwner()
    await mutex.acquire("a")
    gone = tasks.spawn(mutex.acquire("b"), name="gone")
    waiting = tasks.spawn(mutex.acquire("c"), name="waiting")
    await sleep(0)
    mutex.release()
    gone.cancel()  # Its turn has come, and it does not know yet.
    await waiting
    assert gone.cancelled()
    mutex.release()
    await mutex.acquire("d")


async def test_a_call_cancelled_in_the_queue_is_skipped():
    queue, tasks = FairQueue(), TaskOwner()
    gone = tasks.spawn(queue.wait_turn("a", lambda: pytest.fail("nothing to pass on")), name="gone")
    waiting = tasks.spawn(queue.wait_turn("a", lambda: None), name="waiting")
    await sleep(0)
    gone.cancel()
    await sleep(0)
    assert queue.next()
    await waiting
    assert not queue.next()
    assert not queue
