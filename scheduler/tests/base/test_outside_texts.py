"""Bounds on texts of plugins and extenders: length, number, and texts that are code."""

from __future__ import annotations

import pytest

from moorage.base.errors import ExtenderError
from moorage.base.outside_texts import TEXT_MAX, cut_text, cut_texts


class Shouting(str):
    """A text whose methods are code of a plugin."""

    __slots__ = ()

    def __str__(self) -> str:
        raise KeyboardInterrupt

    def __len__(self) -> int:
        raise KeyboardInterrupt

    def __hash__(self) -> int:
        raise KeyboardInterrupt


LONG = "a" * 50_000_000
CUT = "a" * (TEXT_MAX - len("... (50000000 characters)")) + "... (50000000 characters)"


@pytest.mark.parametrize(
    ("text", "result"),
    [
        pytest.param("", "", id="an empty text"),
        pytest.param("a" * TEXT_MAX, "a" * TEXT_MAX, id="the longest text"),
        pytest.param(LONG, CUT, id="a text of 50 MB"),
        pytest.param("half \ud800 pair", "half ? pair", id="half a surrogate pair"),
        pytest.param("ümläut", "ümläut", id="letters outside of ASCII"),
        pytest.param(Shouting("loud"), "loud", id="a subclass of str"),
    ],
)
def test_a_text_comes_out_short_and_plain(text: str, result: str) -> None:
    shown = cut_text(text)
    assert (shown, type(shown)) == (result, str)


@pytest.mark.parametrize(
    ("texts", "result"),
    [
        pytest.param((), (), id="no text"),
        pytest.param(("a", "b"), ("a", "b"), id="short texts"),
        pytest.param((LONG,), (CUT,), id="one long text"),
        pytest.param((LONG, "b"), (CUT, "... (2 texts)"), id="a text behind a long one"),
        pytest.param(
            ("a" * 99,) * 1_000_000,
            (*("a" * 99,) * 41, "... (1000000 texts)"),
            id="a million texts",
        ),
        pytest.param(("",) * 9999, (*("",) * 4096, "... (9999 texts)"), id="empty texts"),
        pytest.param((Shouting("a"),), ("a",), id="a subclass of str"),
    ],
)
def test_texts_come_out_short_together(texts: tuple[str, ...], result: tuple[str, ...]) -> None:
    shown = cut_texts(texts)
    assert shown == result
    assert {type(text) for text in shown} <= {str}


def test_the_message_of_an_extender_is_cut() -> None:
    assert str(ExtenderError(LONG)) == CUT
