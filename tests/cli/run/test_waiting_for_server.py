"""The first call of the scheduler: it waits for a server that is down, and says so."""

from __future__ import annotations

import ssl
from typing import Any

import pytest

from moorage.base.clock import NS_PER_SECOND
from moorage.base.errors import ApiError, RefusedError, TransportError, UnauthorizedError
from moorage.base.rng import Streams
from moorage.cli.session import wait_for_server
from sandbox.tests.apiserver.harness import run_virtual, virtual_clock
from scheduler.tests.client.fakes import ScriptedTransport, answer, failure

DOWN = RefusedError("GET https://x/version: nobody listens")
BUSY = answer(failure(503, "ServiceUnavailable", "starting"), status=503)
VERSION = answer({"major": "1"})


def _certificate() -> TransportError:
    error = RefusedError("GET https://x/version: unknown authority")
    error.__cause__ = ssl.SSLCertVerificationError("unknown authority")
    return error


def _look(*script: Any) -> float:
    """Return how long the first call took, seconds of virtual time."""

    async def main() -> float:
        clock = virtual_clock()
        began = clock.monotonic_ns()
        await wait_for_server(ScriptedTransport(*script), Streams(1), clock)
        return (clock.monotonic_ns() - began) / NS_PER_SECOND

    return run_virtual(main())


def test_a_server_that_answers_is_not_waited_for(capsys: Any):
    assert _look(VERSION) == 0
    assert capsys.readouterr().err == ""


def test_a_server_that_is_down_or_starting_is_waited_for_with_a_word_each_time(capsys: Any):
    # The waits double from 0.8 s, and each wait is stretched by up to its own length.
    assert 5.6 <= _look(DOWN, TransportError("reset"), BUSY, VERSION) <= 11.2
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition("; trying again in ")[0] for line in lines] == [
        "note: GET https://x/version: nobody listens",
        "note: reset",
        "note: starting",
        "note: the server answers",
    ]


@pytest.mark.parametrize(
    ("entry", "error"),
    [
        pytest.param(answer(failure(401), status=401), UnauthorizedError, id="a wrong token"),
        pytest.param(answer(failure(404), status=404), ApiError, id="no API server"),
        pytest.param(_certificate(), TransportError, id="an unknown authority"),
    ],
)
def test_an_error_that_waiting_does_not_mend_ends_at_once(
    entry: Any, error: type[Exception], capsys: Any
):
    with pytest.raises(error):
        _look(entry)
    assert capsys.readouterr().err == ""
