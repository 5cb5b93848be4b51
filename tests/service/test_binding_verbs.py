"""Binding when the answer is lost: whether it happened is looked up before the attempt fails."""

from __future__ import annotations

from typing import Any

import pytest

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
from moorage.service.api_binding import ApiBinding
from tests.client.fakes import ScriptedTransport, answer, failure, instant_sleep

LOST = TransportError("timed out")
BIND = "POST /api/v1/namespaces/default/pods/p/binding"
LOOK = "GET /api/v1/namespaces/default/pods/p"


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
            2,
            id="answer lost, and the look-up succeeds after a while",
        ),
        pytest.param(
            [LOST] * 6,
            TransportError,
            [BIND, *[LOOK] * 5],
            5,
            id="answer lost, and the look-up fails",
        ),
    ],
)
async def test_a_binding_is_looked_at_when_its_answer_is_lost(
    script: list[Any], raised: type[MoorageError] | None, calls: list[str], seconds: int
) -> None:
    transport = ScriptedTransport(*script)
    binding = ApiBinding(Client(transport, rng=Streams(1).stream("client")), lambda *_: None)
    with instant_sleep(ManualClock()) as slept:
        if raised is None:
            await binding.bind("default", "p", "uid-p", "n1")
        else:
            with pytest.raises(raised):
                await binding.bind("default", "p", "uid-p", "n1")
    assert transport.targets == calls
    assert sum(slept) == seconds
