"""What helps when the asked scheduler gives no answer."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.base.errors import MoorageError
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
