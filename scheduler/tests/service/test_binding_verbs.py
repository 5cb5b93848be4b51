"""Binding when the answer is lost: whether it happened is looked up before the attempt fails."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.pod import Pod
from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.base.errors import (
    ConflictError,
    MoorageError,
    NotFoundError,
    RefusedError,
    TransportError,
)
from moorage.base.rng import Streams
from moorage.client.writes import Client
from moorage.service.binding.api_binding import ApiBinding
from moorage.service.binding.slots import BindingSlots
from scheduler.tests.client.fakes import ScriptedTransport, answer, failure, instant_sleep
from scheduler.tests.service.build import pod

LOST = TransportError("timed out")
BIND = "POST /api/v1/namespaces/default/pods/p/binding"
LOOK = "GET /api/v1/namespaces/default/pods/p"


BUSY = answer(failure(503, "ServiceUnavailable"), status=503)
FULL = answer(failure(429, "TooManyRequests"), status=429)


def spoken(transport: ScriptedTransport, slots: BindingSlots, watched: Pod | None) -> ApiBinding:
    """Return the verbs over a transport; the watch shows the pod given."""
    client = Client(transport, rng=Streams(1).stream("client"))
    return ApiBinding(client, lambda *_: watched, slots)


def shown(node_name: str = "", uid: str = "uid-p") -> Any:
    spec = {"nodeName": node_name} if node_name else {}
    return answer({"metadata": {"name": "p", "uid": uid}, "spec": spec})


@pytest.mark.parametrize(
    ("script", "raised", "calls", "seconds"),
    [
        pytest.param([answer({}, status=201)], None, [BIND], 0, id="accepted"),
        pytest.param(
            [answer(failure(409, "Conflict", "taken"), status=409)],
            ConflictError,
            [BIND],
            0,
            id="refused: the pod is not looked up",
        ),
        pytest.param(
            [answer(failure(404, "NotFound", "gone"), status=404)],
            NotFoundError,
            [BIND],
            0,
            id="the pod is gone",
        ),
        pytest.param(
            [RefusedError("refused")],
            RefusedError,
            [BIND],
            0,
            id="never sent: the pod is not looked up",
        ),
        pytest.param(
            [LOST, shown("n1")], None, [BIND, LOOK], 0, id="answer lost, and the pod is bound"
        ),
        pytest.param(
            [LOST, shown()],
            TransportError,
            [BIND, LOOK],
            0,
            id="answer lost, and the pod is not bound",
        ),
        pytest.param(
            [LOST, shown("n2")],
            TransportError,
            [BIND, LOOK],
            0,
            id="answer lost, and the pod is on another node",
        ),
        pytest.param(
            [LOST, shown("n1", uid="another")],
            TransportError,
            [BIND, LOOK],
            0,
            id="answer lost, and another pod has the name",
        ),
        pytest.param(
            [LOST, answer(failure(404, "NotFound"), status=404)],
            TransportError,
            [BIND, LOOK],
            0,
            id="answer lost, and the pod is deleted",
        ),
        pytest.param(
            [LOST, LOST, LOST, shown("n1")],
            None,
            [BIND, LOOK, LOOK, LOOK],
            1 + 2,
            id="answer lost, and the look-up succeeds after a while",
        ),
        pytest.param(
            [LOST, *[BUSY, FULL, LOST] * 3, shown()],
            TransportError,
            [BIND, *[LOOK] * 10],
            1 + 2 + 4 + 8 + 16 + 4 * 30,
            id="answer lost, and no look-up succeeds for long",
        ),
        pytest.param(
            [LOST, LOST, answer(failure(403, "Forbidden"), status=403)],
            TransportError,
            [BIND, LOOK, LOOK],
            1,
            id="answer lost, and the pod may not be read",
        ),
        pytest.param(
            [LOST, answer(failure(401, "Unauthorized"), status=401), shown("n1")],
            None,
            [BIND, LOOK, LOOK],
            1,
            id="answer lost, and the credentials are renewed",
        ),
    ],
)
async def test_a_binding_is_looked_at_when_its_answer_is_lost(
    script: list[Any], raised: type[MoorageError] | None, calls: list[str], seconds: int
) -> None:
    transport = ScriptedTransport(*script)
    slots = BindingSlots()
    binding = spoken(transport, slots, pod("p"))
    with instant_sleep(ManualClock()) as slept:
        if raised is None:
            await binding.bind("default", "p", "uid-p", "n1")
        else:
            with pytest.raises(raised):
                await binding.bind("default", "p", "uid-p", "n1")
    assert transport.targets == calls
    assert sum(slept) == seconds
    assert slots.used == 0


@pytest.mark.parametrize(
    ("watched", "expected"),
    [
        pytest.param(pod("p", nodeName="n1"), True, id="bound"),
        pytest.param(pod("p", nodeName="n2"), False, id="bound elsewhere"),
        pytest.param(pod("p", uid="another"), False, id="replaced"),
        pytest.param(None, False, id="deleted"),
    ],
)
async def test_the_watch_may_tell_before_a_look_up(watched: Pod | None, expected: bool) -> None:
    transport = ScriptedTransport(LOST)
    with instant_sleep(ManualClock()):
        found = await spoken(transport, BindingSlots(), watched).is_bound(
            "default", "p", "uid-p", "n1"
        )
    assert (found, transport.targets) == (expected, [LOOK])


async def test_a_pod_that_waits_for_another_look_does_not_hold_up_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    slots, used = BindingSlots(), []

    async def sleep(_: float) -> None:
        used.append(slots.used)

    monkeypatch.setattr(aio, "sleep", sleep)
    slots.take_slot()
    binding = spoken(ScriptedTransport(LOST, LOST, shown("n1")), slots, pod("p"))
    assert await binding.is_bound("default", "p", "uid-p", "n1")
    assert (used, slots.used) == ([0, 0], 1)


async def test_the_second_look_that_fails_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    binding = spoken(ScriptedTransport(LOST, LOST, shown("n1")), BindingSlots(), pod("p"))
    with instant_sleep(ManualClock()):
        await binding.is_bound("default", "p", "uid-p", "n1")
    text = "pod default/p may be bound to n1 and cannot be looked up: timed out"
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == [
        ("INFO", text),
        ("WARNING", text),
    ]
