"""Go's text templates as manifests use them: a text with actions in, the text without them out.

Understood are values, ``if``, ``else``, ``with``, ``range`` (over a list or a number), variables,
chains of calls, comments and trimmed white space. Everything else is refused.

Source: Go's text/template; the functions are in `go_expressions`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from moorage.base.errors import DecodeError
from moorage_lab.bench.scheduler_perf.go_expressions import Evaluator, Token, text_of, tokens_of

_ACTION: Final = re.compile(r"\{\{(-\s)?(.*?)(\s-)?\}\}", re.DOTALL)
_COMMENT: Final = re.compile(r"\s*/\*.*?\*/\s*\Z", re.DOTALL)
_BLOCKS: Final = ("if", "with", "range")


class _Value(msgspec.Struct, frozen=True):
    """An action that prints a value, or sets variables."""

    tokens: tuple[Token, ...]


class _Block(msgspec.Struct, frozen=True):
    """An ``if``, ``with`` or ``range`` with its two bodies."""

    word: str
    tokens: tuple[Token, ...]
    then: tuple[Any, ...]
    otherwise: tuple[Any, ...]


class GoTemplate:
    """A template that was parsed.

    Parameters
    ----------
    text
        The template.

    Raises
    ------
    DecodeError
        The template has an action that is not understood.
    """

    def __init__(self, text: str) -> None:
        pieces = _pieces(text)
        self._nodes, rest, ending = _parse(pieces)
        if ending:
            raise DecodeError(f"{{{{{ending}}}}} ends nothing")
        assert not rest, "everything was parsed"

    @property
    def is_plain(self) -> bool:
        """Whether the template has no action, so that its result is always the same."""
        return all(isinstance(node, str) for node in self._nodes)

    def render(self, values: Mapping[str, Any]) -> str:
        """Return the text for some parameters.

        Raises
        ------
        DecodeError
            A parameter is missing, or a function cannot take its arguments.
        """
        parts: list[str] = []
        _run(self._nodes, values, {"$": values}, parts)
        return "".join(parts)


def _pieces(text: str) -> list[str | tuple[Token, ...]]:
    """Split a text into literal parts and the tokens of actions."""
    pieces: list[str | tuple[Token, ...]] = []
    position, trim = 0, False
    for match in _ACTION.finditer(text):
        literal = text[position : match.start()]
        literal = literal.lstrip() if trim else literal
        pieces.append(literal.rstrip() if match[1] else literal)
        if not _COMMENT.match(match[2]):
            pieces.append(tuple(tokens_of(match[2])))
        position, trim = match.end(), bool(match[3])
    rest = text[position:]
    if "{{" in rest:
        raise DecodeError("an action is not closed: {{ without }}")
    pieces.append(rest.lstrip() if trim else rest)
    return [piece for piece in pieces if piece != ""]


def _parse(
    pieces: Sequence[str | tuple[Token, ...]],
) -> tuple[tuple[Any, ...], Sequence[str | tuple[Token, ...]], str]:
    """Parse until an ``end`` or ``else`` that belongs outside; return it as text."""
    nodes: list[Any] = []
    while pieces:
        piece, pieces = pieces[0], pieces[1:]
        if isinstance(piece, str):
            nodes.append(piece)
            continue
        if not piece:
            raise DecodeError("an action is empty")
        word = piece[0].text if piece[0].kind == "name" else ""
        if word in ("end", "else"):
            return tuple(nodes), pieces, " ".join(token.text for token in piece)
        if word in _BLOCKS:
            block, pieces = _parse_block(word, piece[1:], pieces)
            nodes.append(block)
        else:
            nodes.append(_Value(piece))
    return tuple(nodes), pieces, ""


def _parse_block(
    word: str, tokens: tuple[Token, ...], pieces: Sequence[str | tuple[Token, ...]]
) -> tuple[_Block, Sequence[str | tuple[Token, ...]]]:
    then, pieces, ending = _parse(pieces)
    otherwise: tuple[Any, ...] = ()
    if ending.startswith("else "):  # else if: a block of its own, ended by the same end
        inner = tuple(tokens_of(ending.removeprefix("else ")))
        nested, pieces = _parse_block(inner[0].text, inner[1:], pieces)
        return _Block(word, tokens, then, (nested,)), pieces
    if ending == "else":
        otherwise, pieces, ending = _parse(pieces)
    if ending != "end":
        raise DecodeError(f"{{{{{word}}}}} has no end")
    return _Block(word, tokens, then, otherwise), pieces


def _run(nodes: Sequence[Any], dot: Any, variables: dict[str, Any], parts: list[str]) -> None:
    for node in nodes:
        if isinstance(node, str):
            parts.append(node)
        elif isinstance(node, _Value):
            names, tokens = _assigned(node.tokens)
            value = Evaluator(dot, variables).value(tokens)
            if names:
                variables[names[-1]] = value
            else:
                parts.append(text_of(value))
        elif node.word == "range":
            _run_range(node, dot, variables, parts)
        else:
            names, tokens = _assigned(node.tokens)
            value = Evaluator(dot, variables).value(tokens)
            inner = {**variables, **dict.fromkeys(names, value)}
            moved = value if node.word == "with" and value else dot
            _run(node.then if value else node.otherwise, moved, inner, parts)


def _run_range(node: _Block, dot: Any, variables: dict[str, Any], parts: list[str]) -> None:
    names, tokens = _assigned(node.tokens)
    value = Evaluator(dot, variables).value(tokens)
    if isinstance(value, int | float):
        value = range(int(value))
    items = list(value.items() if isinstance(value, Mapping) else enumerate(value or ()))
    if not items:
        _run(node.otherwise, dot, {**variables}, parts)
    for key, item in items:
        named = dict(zip(names, (item,) if len(names) == 1 else (key, item), strict=False))
        _run(node.then, item, {**variables, **named}, parts)


def _assigned(tokens: Sequence[Token]) -> tuple[list[str], Sequence[Token]]:
    """Split ``$a, $b := value`` into names and the tokens of the value."""
    texts = [token.text for token in tokens]
    mark = next((texts.index(each) for each in (":=", "=") if each in texts), None)
    if mark is None:
        return [], tokens
    return [text for text in texts[:mark] if text.startswith("$")], tokens[mark + 1 :]
