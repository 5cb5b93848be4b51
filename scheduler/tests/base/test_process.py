"""The loop of a process: which faults that no task takes are logged."""

from __future__ import annotations

import asyncio
import logging

import pytest

from moorage.base.process import run_loop


@pytest.mark.parametrize(
    ("message", "problem", "logged"),
    [
        pytest.param(
            "Fatal error on SSL protocol", RuntimeError("closed"), False, id="TLS after the end"
        ),
        pytest.param("Fatal error on SSL protocol", OSError("no"), True, id="another fault of TLS"),
        pytest.param("something else", RuntimeError("closed"), True, id="another fault"),
    ],
)
def test_a_tls_error_on_a_closed_connection_is_not_logged(
    caplog: pytest.LogCaptureFixture, message: str, problem: Exception, logged: bool
) -> None:
    async def main() -> None:
        context = {"message": message, "exception": problem}
        asyncio.get_running_loop().call_exception_handler(context)

    with caplog.at_level(logging.ERROR):
        run_loop(main())
    assert [each.name for each in caplog.records] == (["asyncio"] if logged else [])
