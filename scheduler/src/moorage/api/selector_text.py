"""Selectors as text: what kubectl and the REST queries ``labelSelector``, ``fieldSelector`` carry.

Mirrors the grammar of kubernetes v1.36 ``apimachinery/pkg/labels`` and ``.../pkg/fields``.
"""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from moorage.api.requirement import (
    Operator,
    Requirement,
    Selector,
    make_requirement,
    make_selector,
)

_TOKEN: Final = re.compile(r"\s*(?:(?P<sign>==|!=|=|!|\(|\)|,|>|<)|(?P<word>[^\s=!(),<>]+))")
_END: Final = ""

_SIGN_OPERATORS: Final = {
    "=": Operator.IN,
    "==": Operator.IN,
    "!=": Operator.NOT_IN,
    "in": Operator.IN,
    "notin": Operator.NOT_IN,
    ">": Operator.GT,
    "<": Operator.LT,
}

FieldOperator = Literal["=", "!="]


class FieldRequirement(NamedTuple):
    """One condition of a field selector: ``path`` must, or must not, equal ``value``."""

    path: str
    op: FieldOperator
    value: str

    def matches(self, value: str) -> bool:
        """Whether the text of the field (empty if absent) fulfils the condition."""
        return (value == self.value) == (self.op == "=")


def parse_label_selector(text: str) -> Selector:
    """Read a label selector such as ``app=web,tier in (a,b),!legacy``.

    Empty text selects everything.

    Raises
    ------
    ValueError
        Not a label selector; the message names the found and the expected text.
    """
    tokens = _Tokens(text)
    requirements = []
    while tokens.peek() != _END:
        try:
            requirements.append(_requirement(tokens))
        except ValueError as error:
            raise ValueError(f"unable to parse requirement: {error}") from error
        after = tokens.next_token()
        if after == _END:
            break
        if after != ",":
            raise ValueError(f"found '{after}', expected: ',' or 'end of string'")
        if not (tokens.at_word() or tokens.peek() == "!"):
            raise ValueError(f"found '{tokens.peek()}', expected: identifier after ','")
    return make_selector(requirements)


def parse_field_selector(text: str) -> list[FieldRequirement]:
    r"""Read a field selector such as ``spec.nodeName=n1,status.phase!=Failed``.

    In values ``\,``, ``\=`` and ``\\`` stand for the characters themselves.

    Returns
    -------
    list[FieldRequirement]
        (path, op, value) with op ``=`` or ``!=``, in the order written; empty for empty text.

    Raises
    ------
    ValueError
        A part has no operator or an unknown escape.
    """
    return [_field_requirement(part, text) for part in _split_unescaped(text) if part]


class _Tokens:
    """The words and signs of a label selector, with one token of look-ahead."""

    __slots__ = ("_at", "_items")

    def __init__(self, text: str) -> None:
        self._items: list[tuple[str, bool]] = []
        self._at = 0
        end = len(text.rstrip())
        position = 0
        while position < end:
            match = _TOKEN.match(text, position)
            assert match is not None, "every character is a sign, a blank or part of a word"
            self._items.append((match["sign"] or match["word"], match["word"] is not None))
            position = match.end()

    def peek(self) -> str:
        return self._items[self._at][0] if self._at < len(self._items) else _END

    def at_word(self) -> bool:
        return self._at < len(self._items) and self._items[self._at][1]

    def next_token(self) -> str:
        found = self.peek()
        self._at += 1
        return found


def _requirement(tokens: _Tokens) -> Requirement:
    negated = tokens.peek() == "!"
    if negated:
        tokens.next_token()
    if not tokens.at_word():
        raise ValueError(f"found '{tokens.peek()}', expected: identifier")
    key = tokens.next_token()
    if negated:
        return make_requirement(key, Operator.DOES_NOT_EXIST)
    if tokens.peek() in {_END, ","}:
        return make_requirement(key, Operator.EXISTS)
    sign = tokens.next_token()
    op = _SIGN_OPERATORS.get(sign)
    if op is None:
        expected = ", ".join(_SIGN_OPERATORS)
        raise ValueError(f"found '{sign}', expected: {expected}")
    values = _value_list(tokens) if sign in {"in", "notin"} else [_exact_value(tokens)]
    return make_requirement(key, op, values)


def _exact_value(tokens: _Tokens) -> str:
    """Read the word after ``=``; nothing there means the empty value."""
    if tokens.peek() in {_END, ","}:
        return ""
    if not tokens.at_word():
        raise ValueError(f"found '{tokens.peek()}', expected: identifier")
    return tokens.next_token()


def _value_list(tokens: _Tokens) -> list[str]:
    """Read ``(a,b)``; an empty place between commas is the empty value."""
    if tokens.peek() != "(":
        raise ValueError(f"found '{tokens.peek()}' expected: '('")
    tokens.next_token()
    values: list[str] = []
    if tokens.peek() == ")":
        tokens.next_token()
        return values
    while True:
        values.append(tokens.next_token() if tokens.at_word() else "")
        sign = tokens.next_token()
        if sign == ")":
            return values
        if sign != ",":
            raise ValueError(f"found '{sign}', expected: ',' or ')'")


def _split_unescaped(text: str) -> list[str]:
    parts, start, escaped = [], 0, False
    for index, char in enumerate(text):
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == ",":
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]


def _field_requirement(part: str, text: str) -> FieldRequirement:
    # The first sign ends the path; paths hold no escapes, so the first one found is the operator.
    match = re.search(r"!=|==|=", part)
    if match is None:
        raise ValueError(f"invalid selector: '{text}'; can't understand '{part}'")
    op: FieldOperator = "!=" if match[0] == "!=" else "="
    return FieldRequirement(part[: match.start()], op, _unescape(part[match.end() :]))


def _unescape(text: str) -> str:
    if not any(char in text for char in "\\,="):
        return text
    result, escaped = [], False
    for char in text:
        if escaped:
            if char not in "\\,=":
                raise ValueError(f"invalid field selector: invalid escape sequence: \\{char}")
            result.append(char)
            escaped = False
        elif char == "\\":
            escaped = True
        elif char in ",=":
            raise ValueError(f"invalid field selector: unescaped character in value: {char}")
        else:
            result.append(char)
    if escaped:
        raise ValueError("invalid field selector: invalid escape sequence: \\")
    return "".join(result)
