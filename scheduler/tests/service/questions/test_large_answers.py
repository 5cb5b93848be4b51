"""An answer that takes long to filter is filtered next to the loop, with the same result."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, cast

import msgspec
import pytest

from moorage.api.mentions import Prose
from moorage.service.core import Core
from moorage.service.questions import pages
from moorage.service.questions.pages import question_pages
from moorage.service.questions.question import Question
from moorage.service.questions.redaction import Redaction
from moorage.service.questions.written_names import Candidates
from moorage.service.serving.authorization import Authorizer, Decision
from moorage.service.serving.callers import Caller
from moorage.service.serving.rights import Rights


class _Texts(msgspec.Struct):
    texts: list[Prose]


class _Names:
    """One node."""

    def __init__(self, core: Core) -> None:
        del core

    def candidates_in(self, word: str) -> Candidates:
        """Return what has a name."""
        return Candidates(word, node=word == "host-alpha")


class _Nobody:
    """Allows nothing."""

    async def decide_resource(self, caller: Caller, attributes: Mapping[str, str]) -> Decision:
        """Refuse."""
        del caller, attributes
        return Decision(False)


@pytest.mark.parametrize(
    ("count", "in_a_thread"),
    [
        pytest.param(1, False, id="a short answer is filtered at once"),
        pytest.param(20_000, True, id="a long answer is filtered in a thread"),
    ],
)
async def test_a_long_answer_is_filtered_next_to_the_loop(
    count: int, in_a_thread: bool, monkeypatch: pytest.MonkeyPatch
):
    threads: list[bool] = []
    walk = Redaction._walk

    def noted(self: Redaction, answer: msgspec.Struct) -> msgspec.Struct:
        threads.append(threading.current_thread() is not threading.main_thread())
        return walk(self, answer)

    async def ask(query: Mapping[str, str]) -> msgspec.Struct:
        del query
        return _Texts(["host-alpha is full"] * count)

    monkeypatch.setattr(Redaction, "_walk", noted)
    monkeypatch.setattr(pages, "WrittenNames", _Names)
    question = Question(path="/x", summary="", answer=_Texts, ask=ask)
    rights = Rights(cast("Authorizer", _Nobody()), Caller("tester"))
    core: Any = object()
    page = await question_pages([question], core=core)["/moorage/v1/x"]({}, rights)
    assert msgspec.json.decode(page.body) == {"texts": ["(hidden) is full"] * count}
    assert threads == [in_a_thread] * 2  # once to find the names, once to leave them out
