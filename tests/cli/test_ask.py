"""What helps when the asked scheduler gives no answer."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.base.errors import MoorageError, TransportError
from moorage.cli.ask import SchedulerLink, proxy_path
from scheduler.tests.client.fakes import ScriptedTransport, answer, failure

PROXY = proxy_path("kube-system", "moorage-0")


@pytest.mark.parametrize(
    ("path", "code", "remedy"),
    [
        pytest.param("", 401, "give --token of a user of the scheduler's cluster", id="unknown"),
        pytest.param("", 403, "give --token of a user that may get the paths", id="not allowed"),
        pytest.param(PROXY, 401, "choose another user of the kubeconfig", id="unknown to a proxy"),
        pytest.param(PROXY, 403, "get, or create, pods/proxy", id="not allowed by a proxy"),
    ],
)
async def test_who_is_turned_away_is_told_what_helps(path: str, code: int, remedy: str) -> None:
    transport: Any = ScriptedTransport(answer(failure(code), status=code))
    link = SchedulerLink(transport, path, "the scheduler at x")
    with pytest.raises(MoorageError, match="the scheduler at x refuses") as raised:
        await link.ask("/queue")
    assert remedy in str(raised.value)


async def test_a_right_about_an_object_is_named_and_no_path_is_blamed() -> None:
    text = 'nodes "a" is forbidden: User "u" cannot get resource "nodes" in API group ""'
    transport: Any = ScriptedTransport(answer(failure(403, message=text), status=403))
    with pytest.raises(MoorageError) as raised:
        await SchedulerLink(transport, "", "the scheduler at x").ask("/queue")
    assert str(raised.value) == f"the scheduler at x refuses: {text}"


async def test_a_scheduler_that_hangs_gets_no_question_that_may_take_minutes() -> None:
    transport: Any = ScriptedTransport(TransportError("silent for 15.0 s"), answer({}))
    with pytest.raises(MoorageError, match=r"the scheduler at x does not answer: silent for 15\.0"):
        await SchedulerLink(transport, "", "the scheduler at x").post("/what-if", b"{}")
    assert [(each.method, each.path) for each in transport.calls] == [("GET", "/livez")]


async def test_a_scheduler_that_lives_gets_a_question_whatever_it_says_of_its_health() -> None:
    transport: Any = ScriptedTransport(answer(failure(500), status=500), answer({}))
    await SchedulerLink(transport, PROXY, "the scheduler at x").post("/what-if", b"{}")
    assert [each.path for each in transport.calls] == [
        f"{PROXY}/livez",
        f"{PROXY}/moorage/v1/what-if",
    ]
