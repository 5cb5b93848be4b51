"""Compares two decisions field by field: kube-scheduler's recording and moorage's answer.

Third stop of the conformance runner, after `case`. Both sides have the shape of the
recordings, so a comparison is a walk over plain values; a difference names the pod, the field and
the place inside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

Json = dict[str, Any]

_ABSENT: Final = object()
_NOTHING: Final = "(nothing)"


class Difference(msgspec.Struct, frozen=True):
    """One field of one pod that differs from the recording.

    Parameters
    ----------
    case
        Name of the scenario.
    pod
        ``namespace/name``; empty for a field of the whole case.
    field
        Field of the recording, e.g. ``scores``.
    place
        Path to the first difference in the field, e.g. ``NodeAffinity.raw[3]``; may be empty.
    expected, got
        The two values, as plain values; ``(nothing)`` where one side has none.
    """

    case: str
    pod: str
    field: str
    place: str
    expected: Any
    got: Any


def compare(case: str, expected: Json, actual: Json) -> list[Difference]:
    """Return the first difference in every field that differs.

    Parameters
    ----------
    case
        Name of the scenario, for the differences.
    expected, actual
        ``expected`` of a recorded case, and the answer in the same shape.
    """
    differences: list[Difference] = []
    for field in _keys(expected, actual):
        left, right = expected.get(field, _ABSENT), actual.get(field, _ABSENT)
        if field in ("pods", "sequence") and isinstance(left, list) and isinstance(right, list):
            differences += _compare_rows(case, field, left, right)
        else:
            differences += _compare_field(case, "", field, left, right)
    return differences


def _compare_rows(
    case: str, field: str, expected: list[Json], actual: list[Json]
) -> Iterator[Difference]:
    theirs, ours = ([row.get("pod") for row in rows] for rows in (expected, actual))
    if theirs != ours:
        yield from _compare_field(case, "", field, theirs, ours)
        return
    for left, right in zip(expected, actual, strict=True):
        # Another outcome has other fields; listing them all would repeat the same difference.
        fields = _keys(left, right) if left.get("outcome") == right.get("outcome") else ["outcome"]
        for name in fields:
            pair = left.get(name, _ABSENT), right.get(name, _ABSENT)
            yield from _compare_field(case, str(left.get("pod")), name, *pair)


def _compare_field(
    case: str, pod: str, field: str, expected: Any, actual: Any
) -> Iterator[Difference]:
    for place, left, right in _first_difference("", expected, actual):
        yield Difference(case, pod, field, place, _shown(left), _shown(right))


def _first_difference(place: str, left: Any, right: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield at most one place where two values differ, as deep inside as possible."""
    if type(left) is type(right) and left == right:
        return
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        for key in _keys(left, right):
            inner = f"{place}.{key}" if place else str(key)
            for difference in _first_difference(
                inner, left.get(key, _ABSENT), right.get(key, _ABSENT)
            ):
                yield difference
                return
        return
    if isinstance(left, list) and isinstance(right, list) and len(left) == len(right):
        for index, pair in enumerate(zip(left, right, strict=True)):
            for difference in _first_difference(f"{place}[{index}]", *pair):
                yield difference
                return
        return
    yield place, left, right


def _keys(left: Mapping[str, Any], right: Mapping[str, Any]) -> list[str]:
    """Return the keys of both sides: the first side's keys, then keys of the second side alone."""
    return [*left, *(key for key in right if key not in left)]


def _shown(value: Any) -> Any:
    return _NOTHING if value is _ABSENT else value
