"""The steps that leave hidden things out of an answer, made from the types of its fields."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Final, Protocol, TypeAlias, Union

import msgspec

from moorage.api.mentions import Naming


class Hiding(Protocol):
    """Says what is hidden, and counts it (`moorage.service.questions.redaction`)."""

    def redacted_text(self, text: str) -> str:
        """Return a text without hidden names."""
        ...

    def leave_out(self, noun: str, count: int = 1) -> None:
        """Count things that are left out."""
        ...

    def sees_nodes(self) -> bool:
        """Whether nodes may be seen."""
        ...

    def sees_pod(self, namespace: str, name: str) -> bool:
        """Whether a pod may be seen."""
        ...


Step: TypeAlias = Callable[[Any, Hiding], Any]
"""Returns a value without hidden things, or `GONE`."""
GONE: Final = object()
HIDDEN: Final = "(hidden)"
"""Stands for one name that the caller may not read."""
OTHER_POD: Final = "a pod of another namespace"
"""Stands for one pod."""
_NOUNS: Final = {
    "pod": ("pod of another namespace", "pods of other namespaces"),
    "group": ("pod group of another namespace", "pod groups of other namespaces"),
    "decision": (
        "decision about a pod of another namespace",
        "decisions about pods of other namespaces",
    ),
    "suggestion": (
        "suggestion about a pod of another namespace",
        "suggestions about pods of other namespaces",
    ),
    "row": (
        "row of pods of another namespace",
        "rows of pods of other namespaces",
    ),
    "node": ("node", "nodes"),
}
"""The things that are counted, one and several."""


def count_in_words(count: int, noun: str) -> str:
    """Return a number of hidden things in words."""
    one, several = _NOUNS[noun]
    return f"{count} {one if count == 1 else several}"


@cache
def step_of(type_: Any) -> Step | None:
    """Return the step for values of a type; None where they name nothing."""
    origin, arguments = typing.get_origin(type_), typing.get_args(type_)
    if origin is Annotated:
        return _STEPS.get(arguments[1])
    if origin in (Union, types.UnionType):
        return _one_of(arguments)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _of_mapping(*arguments)
    if isinstance(origin, type) and issubclass(origin, Sequence):
        return _of_sequence(arguments[0])
    if isinstance(type_, type) and issubclass(type_, msgspec.Struct):
        return _of_struct(type_)
    return None


def _node(value: str, hiding: Hiding) -> str:
    return value if not value or hiding.sees_nodes() else HIDDEN


def _sees(value: str, hiding: Hiding) -> bool:
    namespace, _, name = value.partition("/")
    return not value or hiding.sees_pod(namespace, name)


def _pod(value: str, hiding: Hiding) -> str:
    return value if _sees(value, hiding) else OTHER_POD


def _subject(value: str, hiding: Hiding) -> Any:
    return value if _sees(value, hiding) else GONE


def _prose(value: Any, hiding: Hiding) -> Any:
    """Go through a text, or through all texts of plain JSON values."""
    if isinstance(value, str):
        return hiding.redacted_text(value)
    if isinstance(value, dict):
        return {hiding.redacted_text(key): _prose(each, hiding) for key, each in value.items()}
    if isinstance(value, list):
        return [_prose(each, hiding) for each in value]
    return value


_STEPS: Final[Mapping[Naming, Step]] = {
    Naming.NODE: _node,
    Naming.POD: _pod,
    Naming.SUBJECT_POD: _subject,
    Naming.PROSE: _prose,
}


def _naming(type_: Any) -> Naming | None:
    """Return what a text of a type names."""
    found = typing.get_args(type_)[1] if typing.get_origin(type_) is Annotated else None
    return found if isinstance(found, Naming) else None


def _one_of(members: Sequence[Any]) -> Step | None:
    steps = [step for step in map(step_of, members) if step is not None]
    if not steps:
        return None
    assert len(steps) == 1, "one member of a union names things"
    step = steps[0]
    return lambda value, hiding: value if value in (None, msgspec.UNSET) else step(value, hiding)


def _of_sequence(item: Any) -> Step | None:
    step, naming = step_of(item), _naming(item)
    if step is None:
        return None

    def nodes(value: Sequence[str], hiding: Hiding) -> Sequence[str]:
        if not value or hiding.sees_nodes():
            return value
        return (count_in_words(len(value), "node"),)

    def pods(value: Sequence[str], hiding: Hiding) -> Sequence[str]:
        seen = [each for each in value if _sees(each, hiding)]
        if len(seen) == len(value):
            return value
        return (*seen, count_in_words(len(value) - len(seen), "pod"))

    def each_of(value: Sequence[Any], hiding: Hiding) -> Sequence[Any]:
        found = [step(each, hiding) for each in value]
        return tuple(each for each in found if each is not GONE)

    return nodes if naming is Naming.NODE else pods if naming is Naming.POD else each_of


def _of_mapping(key: Any, item: Any) -> Step | None:
    step, naming = step_of(item), _naming(key)
    if step is None and naming is None:
        return None

    def by_node(value: Mapping[str, Any], hiding: Hiding) -> Mapping[str, Any]:
        if not value or hiding.sees_nodes():
            return values(value, hiding)
        hiding.leave_out("node", len(value))
        return {}

    def by_prose(value: Mapping[str, Any], hiding: Hiding) -> Mapping[str, Any]:
        found: dict[str, Any] = {}
        for name, each in value.items():
            text = hiding.redacted_text(name)
            found[text] = found[text] + each if text in found else each
        return found

    def values(value: Mapping[str, Any], hiding: Hiding) -> Mapping[str, Any]:
        return value if step is None else {k: step(each, hiding) for k, each in value.items()}

    return by_node if naming is Naming.NODE else by_prose if naming is Naming.PROSE else values


def _of_struct(type_: type[msgspec.Struct]) -> Step | None:
    hints = typing.get_type_hints(type_, include_extras=True)
    fields = {name: hints[name] for name in type_.__struct_fields__}
    steps = {name: step for name, hint in fields.items() if (step := step_of(hint)) is not None}
    about = [name for name, hint in fields.items() if _naming(hint) is Naming.SUBJECT_NAMESPACE]
    noun = getattr(type_, "counted_as", "pod")
    finish = getattr(type_, "after_redaction", None)
    if not steps and not about:
        return None

    def whole(value: Any, hiding: Hiding) -> Any:
        hidden = about and not hiding.sees_pod(getattr(value, about[0]), value.name)
        if hidden:
            hiding.leave_out(noun)
            return GONE
        changed = {}
        for name, step in steps.items():
            before = getattr(value, name)
            after = step(before, hiding)
            if after is GONE:
                hiding.leave_out(noun)
                return GONE
            if after is not before:
                changed[name] = after
        found = msgspec.structs.replace(value, **changed) if changed else value
        return found if finish is None else finish(found, value)

    return whole
