"""Codes of reasons as text for people, and as plain values for programs; pure."""

from __future__ import annotations

import textwrap
from difflib import get_close_matches
from typing import Final

from moorage.api.reasons.codes import ReasonCode
from moorage.base.errors import UsageError
from moorage.cli.rows.text import cut, terminal_width
from moorage.explain.reasons.texts import TEXTS

_INDENT: Final = "  "
_WIDTH_MOST: Final = 100


def code_of(word: str) -> ReasonCode:
    """Return the code that a person typed, in any case of letters.

    Raises
    ------
    UsageError
        There is no such code.
    """
    by_lower = {code.lower(): code for code in ReasonCode}
    known = by_lower.get(word.lower())
    if known is not None:
        return known
    close = get_close_matches(word.lower(), by_lower, n=1)
    hint = f"; did you mean {by_lower[close[0]]}?" if close else ""
    raise UsageError(f"{word} is no code of a reason{hint} `moorage reason` lists all")


def plain(code: ReasonCode) -> dict[str, str]:
    """Return a code and its text as plain values."""
    text = TEXTS[code]
    return {
        "code": code.value,
        "what": text.what,
        "see": text.see,
        "fix": text.fix,
        "example": text.example,
    }


def text_of(code: ReasonCode) -> str:
    """Return what a code means, in lines that do not wrap."""
    text, width = TEXTS[code], min(terminal_width(), _WIDTH_MOST)

    def wrapped(sentence: str) -> str:
        return textwrap.fill(sentence, width, initial_indent=_INDENT, subsequent_indent=_INDENT)

    return "\n".join(
        [
            code.value,
            wrapped(text.what),
            "See it:",
            f"{_INDENT}{text.see}",
            "Fix it:",
            wrapped(text.fix),
            "Example:",
            wrapped(text.example),
        ]
    )


def list_text() -> str:
    """Return all codes, one line each."""
    longest, width = max(map(len, ReasonCode)), terminal_width()
    return "\n".join(cut(f"{code:<{longest}}  {text.what}", width) for code, text in TEXTS.items())
