"""What a call runs: its answer, its notes, and the bounds on both."""

from __future__ import annotations

import asyncio

import pytest

from moorage.base.errors import MoorageError
from moorage.cli.mcp import calls
from moorage.cli.mcp.calls import CallAnswer, run
from moorage.cli.mcp.tools import Invocation


def answer(*words: str, stdin: bytes = b"", json: bool = False, seconds: float = 60) -> CallAnswer:
    return asyncio.run(run(Invocation(words, stdin, json=json), seconds=seconds))


def test_the_answer_is_the_commands() -> None:
    text = answer("reason", "--", "InsufficientCPU").text
    assert text.splitlines()[0] == "InsufficientCPU"
    assert "moorage top nodes" in text


def test_a_command_that_fails_says_why() -> None:
    found = answer("reason", "--", "InsufficientCP")
    assert found.failed
    assert found.text == ""
    assert found.notes.startswith("error: InsufficientCP is no code of a reason; did you mean")


def test_text_is_cut_at_a_line_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = answer("reason").text.splitlines()
    monkeypatch.setattr(calls, "_BYTES_MAX", 500)
    *shown, last = answer("reason").text.splitlines()
    assert shown == whole[: len(shown)]
    assert 0 < len("\n".join(shown)) <= 500
    assert last == f"... {len(whole) - len(shown)} more lines are left out: ask for less"


def test_json_is_not_cut_but_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_BYTES_MAX", 500)
    with pytest.raises(MoorageError, match=r"in JSON has \d+ bytes, and 500 are the most"):
        answer("reason", "--output=json", json=True)


def test_a_call_that_takes_too_long_is_ended() -> None:
    with pytest.raises(MoorageError, match=r"there is no answer after 0.01 s"):
        answer("reason", seconds=0.01)


def test_an_endless_answer_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_READ_BYTES_MAX", 500)
    with pytest.raises(MoorageError, match="the answer has more than 500 bytes"):
        answer("reason")
