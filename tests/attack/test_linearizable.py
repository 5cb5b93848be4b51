"""Every object is one register: calls at once, kills and restarts leave histories with an order.

Clients create, replace, read and delete a few config maps at once over HTTPS while the server is
killed and started again. For each object the history must be linearizable, and no resourceVersion
may be told of two writes.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.api.resources import CONFIG_MAPS
from moorage.base.errors import ApiError, MoorageError
from moorage.base.rng import Random, Streams
from moorage.client.writes import Client
from sandbox.tests.sandbox.crash import PATH, Server, client_of, server_on
from tests.attack.histories import NEVER, Kind, Made, is_linearizable

CLIENTS = 8
NAMES = ("a", "b", "c")
ROUNDS = 3
CALLS = 240


def _made(kind: Kind, began: float, ended: float, **more: int) -> Made:
    return Made(kind, began, ended, **more)


OK = {"code": 200}


@pytest.mark.parametrize(
    ("calls", "right"),
    [
        pytest.param([], True, id="nothing"),
        pytest.param(
            [
                _made("create", 0, 1, value=1, code=201, version=5),
                _made("get", 2, 3, value=1, version=5, **OK),
            ],
            True,
            id="a read returns the acknowledged write",
        ),
        pytest.param(
            [
                _made("create", 0, 1, value=1, code=201, version=5),
                _made("get", 2, 3, code=404),
            ],
            False,
            id="an acknowledged write is lost",
        ),
        pytest.param(
            [
                _made("create", 0, 4, value=1, code=201, version=5),
                _made("get", 1, 2, code=404),
                _made("get", 2, 3, value=1, version=5, **OK),
            ],
            True,
            id="a write takes effect between two reads beside it",
        ),
        pytest.param(
            [
                _made("create", 0, 4, value=1, code=201, version=5),
                _made("get", 1, 2, value=1, version=5, **OK),
                _made("get", 2.5, 3, code=404),
            ],
            False,
            id="a write that was read is taken back",
        ),
        pytest.param(
            [
                _made("create", 0, 1, value=1, code=201, version=5),
                _made("replace", 2, 3, value=2, expected=5, version=6, **OK),
                _made("replace", 2, 3, value=3, expected=5, version=7, **OK),
            ],
            False,
            id="two replace the same version",
        ),
        pytest.param(
            [
                _made("create", 0, 1, value=1, code=201, version=5),
                _made("replace", 2, NEVER, value=2, expected=5),
                _made("get", 3, 4, value=1, version=5, **OK),
                _made("get", 5, 6, value=2, version=6, **OK),
            ],
            True,
            id="a call without an answer takes effect late",
        ),
        pytest.param(
            [
                _made("create", 0, 1, value=1, code=201, version=5),
                _made("replace", 2, NEVER, value=2, expected=5),
                _made("get", 3, 4, value=2, version=6, **OK),
                _made("get", 5, 6, value=1, version=5, **OK),
            ],
            False,
            id="and is taken back",
        ),
        pytest.param(
            [
                _made("create", 0, 1, value=1, code=201, version=5),
                _made("delete", 2, 3, **OK),
                _made("create", 2, 4, value=2, code=409),
                _made("create", 5, 6, value=3, code=201, version=9),
            ],
            True,
            id="a create beside a delete comes before it",
        ),
    ],
)
def test_the_checker_tells_linearizable_histories_from_others(calls, right):
    assert is_linearizable(calls) is right


class Caller:
    """Makes calls and writes down what became of them."""

    def __init__(self, client: Client, rng: Random, values: itertools.count[int]) -> None:
        self._client = client
        self._rng = rng
        self._values = values
        self.calls: list[tuple[str, Made]] = []
        # Name -> the version read last.
        self._seen: dict[str, int] = {}

    async def call(self) -> bool:
        """Make one call; whether it was answered."""
        name = self._rng.choice(NAMES)
        kinds: tuple[Kind, ...] = ("create", "replace", "replace", "get", "get", "delete")
        kind = self._rng.choice(kinds)
        expected = self._seen.get(name, 1) if kind == "replace" else 0
        value = next(self._values) if kind in ("create", "replace") else 0
        began = time.monotonic()
        code = version = 0
        try:
            found = await self._sent(kind, name, value, expected)
        except ApiError as refused:
            code = refused.code
        except MoorageError:
            made = Made(kind, began, NEVER, value, expected)
            self.calls.append((name, made))
            return False
        else:
            code = 201 if kind == "create" else 200
            version = int(found["metadata"]["resourceVersion"]) if kind != "delete" else 0
            if kind == "get":
                value = int(found["data"]["value"])
            if version:
                self._seen[name] = version
        assert code < 500, f"{kind}: {code}"
        self.calls.append(
            (name, Made(kind, began, time.monotonic(), value, expected, code, version))
        )
        return True

    async def _sent(self, kind: Kind, name: str, value: int, expected: int) -> Any:
        client, space = self._client, "default"
        meta = {"name": name} | ({"resourceVersion": str(expected)} if expected else {})
        body = {"metadata": meta | {"namespace": space}, "data": {"value": str(value)}}
        if kind == "create":
            return await client.create(CONFIG_MAPS, body, namespace=space)
        if kind == "replace":
            return await client.replace(CONFIG_MAPS, body, name=name, namespace=space)
        if kind == "get":
            return await client.get(CONFIG_MAPS, name, namespace=space)
        return await client.delete(CONFIG_MAPS, name, namespace=space)


async def _calls_until_killed(
    client: Client, server: Server, seed: int, values: itertools.count[int]
) -> list[tuple[str, Made]]:
    streams = Streams(seed)
    callers = [
        Caller(client, streams.stream(f"caller/{number}"), values) for number in range(CLIENTS)
    ]
    made = [0]

    async def go_on(caller: Caller) -> None:
        while await caller.call():
            made[0] += 1
            if made[0] == CALLS:
                server.kill()

    await asyncio.gather(*[go_on(caller) for caller in callers])
    await server.process.wait()
    dead = time.monotonic()
    return [
        (name, made if made.code else msgspec.structs.replace(made, ended=dead))
        for caller in callers
        for name, made in caller.calls
    ]


async def test_concurrent_calls_and_kills_leave_linearizable_histories(tmp_path: Path):
    calls: list[tuple[str, Made]] = []
    values = itertools.count(1)
    for round_ in range(ROUNDS):
        async with server_on(tmp_path) as server, client_of(tmp_path) as client:
            calls += await _calls_until_killed(client, server, round_, values)
    answered = [made for _, made in calls if made.code]
    assert len(answered) >= ROUNDS * CALLS
    assert {made.code for made in answered} == {200, 201, 404, 409}
    writes = Counter(
        made.version for made in answered if made.kind in ("create", "replace") and made.version
    )
    assert [version for version, count in writes.items() if count > 1] == []
    for name in NAMES:
        history = [made for each, made in calls if each == name]
        assert is_linearizable(history), f"{name} in {PATH}: {sorted(history, key=_began)}"


def _began(made: Made) -> float:
    return made.began
