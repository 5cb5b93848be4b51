"""The part of JSONPath that definitions of custom resources use.

Place in the flow: printer columns, selectable fields and the scale subresource name their values by
such paths. Supported are members (``.spec.a``, ``['a.b']``), indexes, ``[*]``, and filters that
compare a member (``[?(@.type=="Ready")]``). Anything else is refused when the definition is
written.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

Step = Callable[[Any], Iterable[Any]]

_TOKEN = re.compile(
    r"""\.(?P<name>(?:\\.|[^.\[\]\\(){}*])+)
      | \[\s*(?P<quote>['"])(?P<quoted>(?:(?!(?P=quote)).)*)(?P=quote)\s*\]
      | \[(?P<index>-?[0-9]+)\]
      | (?P<all>\[\*\]|\.\*)
      | \[\?\(\s*@(?P<inner>(?:\.[^=!\s]+)?)\s*(?P<op>==|!=)\s*
            (?P<value>"[^"]*"|'[^']*'|[^)\s]+)\s*\)\]
    """,
    re.VERBOSE,
)


@lru_cache(maxsize=1024)
def compile_path(text: str) -> tuple[Step, ...]:
    """Compile a path.

    Raises
    ------
    ValueError
        The path is malformed, or uses a part of JSONPath that is not supported here.
    """
    steps: list[Step] = []
    place = 0
    text = text.strip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise ValueError(f"unexpected {text[place:]!r} in JSONPath {text!r}")
        steps.append(_step(match))
        place = match.end()
    if not steps:
        raise ValueError("an empty JSONPath")
    return tuple(steps)


def find(text: str, obj: Any) -> list[Any]:
    """Return every value that a path leads to, in document order."""
    found = [obj]
    for step in compile_path(text):
        found = [value for each in found for value in step(each)]
    return found


def simple_path(text: str) -> tuple[str, ...]:
    """Return the members of a path that consists of members only.

    Raises
    ------
    ValueError
        The path holds an index, a filter or a wildcard.
    """
    members = []
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        name = match and (match["quoted"] or _plain(match["name"] or ""))
        if not match or not name:
            raise ValueError(f"{text!r} must be a path of members such as .spec.replicas")
        members.append(name)
        place = match.end()
    if not members:
        raise ValueError("an empty JSONPath")
    return tuple(members)


def _plain(name: str) -> str:
    return re.sub(r"\\(.)", r"\1", name)


def _step(match: re.Match[str]) -> Step:
    if match["name"] is not None:
        return _member(_plain(match["name"]))
    if match["quoted"] is not None:
        return _member(match["quoted"])
    if match["index"] is not None:
        return _element(int(match["index"]))
    if match["all"] is not None:
        return _every
    return _filter(match["inner"], match["op"] == "==", match["value"])


def _member(name: str) -> Step:
    def step(value: Any) -> Iterable[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _element(index: int) -> Step:
    def step(value: Any) -> Iterable[Any]:
        if isinstance(value, list) and -len(value) <= index < len(value):
            yield value[index]

    return step


def _every(value: Any) -> Iterable[Any]:
    if isinstance(value, list):
        yield from value
    elif isinstance(value, dict):
        yield from value.values()


def _filter(inner: str, equal: bool, literal: str) -> Step:
    wanted: Any = literal[1:-1] if literal[0] in "\"'" else _literal(literal)

    def step(value: Any) -> Iterable[Any]:
        for each in value if isinstance(value, list) else ():
            found = find(inner, each) if inner else [each]
            if found and (found[0] == wanted) is equal:
                yield each

    return step


def _literal(text: str) -> Any:
    if text in ("true", "false"):
        return text == "true"
    try:
        return int(text)
    except ValueError:
        return text
