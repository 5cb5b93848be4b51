"""The client-side rate limit under a manual clock."""

from __future__ import annotations

import pytest

from moorage.base.clock import ManualClock
from moorage.client.rate_limit import RateLimitedTransport
from moorage.client.transport import Call
from scheduler.tests.client.fakes import ScriptedTransport, Stream, answer, instant_sleep


@pytest.mark.parametrize(
    ("qps", "burst", "pause", "waits"),
    [
        pytest.param(10, 1, 0, [0.1, 0.1, 0.1], id="without a burst each call waits its turn"),
        pytest.param(10, 3, 0, [0.1], id="a burst goes through at once"),
        pytest.param(10, 1, 0.04, [0.06, 0.06, 0.06], id="time that passed anyway counts"),
        pytest.param(10, 2, 60, [], id="no more than the burst is ever saved up, slow calls pass"),
        pytest.param(0.5, 0, 0, [2.0, 2.0, 2.0], id="a burst below one is one"),
    ],
)
async def test_each_call_waits_for_its_share_of_the_rate(qps, burst, pause, waits):
    clock = ManualClock()
    inner = ScriptedTransport(*[answer({})] * 4)
    limited = RateLimitedTransport(inner, qps=qps, burst=burst, clock=clock)
    with instant_sleep(clock) as slept:
        for _ in range(4):
            await limited.request(Call("GET", "/x"))
            clock.advance(pause)
    assert [round(seconds, 6) for seconds in slept] == waits
    assert len(inner.calls) == 4


async def test_an_idle_client_saves_up_one_burst_at_most():
    clock = ManualClock()
    limited = RateLimitedTransport(
        ScriptedTransport(*[answer({})] * 4), qps=1, burst=2, clock=clock
    )
    clock.advance(3600)
    with instant_sleep(clock) as slept:
        for _ in range(4):
            await limited.request(Call("GET", "/x"))
    assert slept == [1.0, 1.0]


async def test_opening_a_stream_is_a_call_and_closing_closes_the_inner_one():
    clock = ManualClock()
    inner = ScriptedTransport(answer({}), Stream({"a": 1}, {"b": 2}))
    limited = RateLimitedTransport(inner, qps=1, burst=1, clock=clock)
    with instant_sleep(clock) as slept:
        await limited.request(Call("GET", "/x"))
        async with limited.stream(Call("GET", "/w")) as stream:
            assert [line async for line in stream] == [b'{"a":1}', b'{"b":2}']
    await limited.close()
    assert (slept, inner.closed) == ([1.0], True)
