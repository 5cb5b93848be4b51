"""What is logged of calls that are no HTTP; the servers' part is in tests/attack/test_fuzz.py."""

from __future__ import annotations

import logging

import pytest
from aiohttp.http_exceptions import BadStatusLine

from moorage.base.malformed_calls import log_malformed_calls_shortly

LIBRARY = logging.getLogger("aiohttp.server")
SECRET = "GET /?token=secret"


@pytest.mark.parametrize(
    ("problem", "told"),
    [
        pytest.param(
            BadStatusLine(SECRET),
            [("INFO", "refused a malformed call with 400: BadStatusLine")],
            id="a malformed call",
        ),
        pytest.param(
            ValueError("a mistake of ours"),
            [("ERROR", "Error handling request from a")],
            id="any other failure",
        ),
    ],
)
def test_a_malformed_call_is_logged_in_one_line_without_its_bytes(problem, told, caplog):
    caplog.set_level(logging.INFO)
    log_malformed_calls_shortly()
    LIBRARY.error("Error handling request from %s", "a", exc_info=problem)
    assert [(each.levelname, each.getMessage()) for each in caplog.records] == told
    assert SECRET not in caplog.text
