"""Reads the answers of plugins from outside, which may be a plain bool or text.

Each function returns what the engine works with, or raises `WrongAnswerError` with a text that
names the answer and the allowed answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any, Final, TypeGuard, cast

import numpy as np
from numpy.typing import NDArray

from moorage.base.outside_texts import cut_text, cut_texts
from moorage.framework.containment import WrongAnswerError
from moorage.framework.group import Placement
from moorage.framework.points import PostFilterResult, PreFilterResult, ScoreArray
from moorage.framework.status import (
    SUCCESS,
    Code,
    FilterAnswer,
    ReasonTable,
    Status,
    answer_where,
    unschedulable,
)

_CODES: Final = len(Code)
_INT64_MAX: Final = 2**63 - 1


def rejection_text(plugin: str) -> str:
    """Return the reason of a plugin that rejects without giving a reason."""
    return f"node(s) didn't satisfy plugin {plugin}"


def as_status(answer: object, plugin: str) -> Status:
    """Read a yes or no.

    Success: a `Status` that says so, True or None. Unschedulable: False, or a text, which is the
    reason. Any other `Status` is returned unchanged.
    """
    if isinstance(answer, Status):
        code: object = answer.code
        reasons: object = answer.reasons
        if not (isinstance(code, Code) and _texts(reasons)):
            raise _wrong(answer, "a Status with a Code and a tuple of texts")
        short = cut_texts(reasons)
        if type(answer) is Status and short is reasons:
            return answer
        return Status(code, short, plugin)  # of a subclass, every attribute may be code
    if answer is None or answer is True or (isinstance(answer, np.bool_) and bool(answer)):
        return SUCCESS
    if answer is False or isinstance(answer, np.bool_):
        return unschedulable(rejection_text(plugin))
    if isinstance(answer, str):
        return unschedulable(cut_text(answer) or rejection_text(plugin))
    raise _wrong(answer, "True, False, a text that says why not, None or a Status")


def as_yes_or_no(answer: object) -> bool:
    """Read the answer of a comparator: True or False, and nothing that only counts as one."""
    if isinstance(answer, bool | np.bool_):
        return bool(answer)
    raise _wrong(answer, "True or False")


def as_score(answer: Any) -> int:
    """Read one score: any finite number, rounded to the nearest whole one."""
    if isinstance(answer, bool | np.bool_) or not isinstance(answer, Real):
        raise _wrong(answer, "a number")
    if not math.isfinite(answer):
        raise _wrong(answer, "a finite number")
    number: Any = answer
    whole = int(round(number))  # noqa: RUF046 - NumPy's own rounding keeps NumPy's type
    if abs(whole) > _INT64_MAX:
        raise _wrong(answer, "a number that fits 64 bits")
    return whole


def as_scores(answer: object, rows: int) -> ScoreArray:
    """Read scores of all rows: int64, (rows,); other numbers are rounded."""
    try:
        scores: NDArray[Any] = np.asarray(answer)
    except ValueError as problem:
        raise _wrong(answer, f"{rows} numbers") from problem
    if scores.shape != (rows,):
        raise WrongAnswerError(f"plugin answered with shape {scores.shape} instead of ({rows},)")
    if scores.dtype == np.int64:
        return scores
    if scores.dtype.kind in "iu":
        return scores.astype(np.int64)
    if scores.dtype.kind != "f":
        raise WrongAnswerError(f"plugin answered with dtype {scores.dtype}; numbers are understood")
    wrong = np.flatnonzero(~(np.abs(scores) < float(_INT64_MAX)))
    if len(wrong):
        raise WrongAnswerError(
            f"plugin answered {scores[wrong[0]]} for row {wrong[0]}; finite numbers are understood"
        )
    whole: ScoreArray = np.rint(scores).astype(np.int64)
    return whole


def as_filter_answer(
    answer: object, plugin: str, rows: int, reasons: ReasonTable
) -> FilterAnswer | None:
    """Read the vector form of Filter: None, a `FilterAnswer`, or bool (rows,), True: passes."""
    if answer is None:
        return None
    if isinstance(answer, FilterAnswer):
        return _checked(answer, rows, reasons)
    passed = np.asarray(answer)
    if passed.dtype != np.bool_:
        raise _wrong(answer, f"None, a FilterAnswer or {rows} bools")
    if passed.shape != (rows,):
        raise WrongAnswerError(f"plugin answered with shape {passed.shape} instead of ({rows},)")
    return answer_where(~passed, Code.UNSCHEDULABLE, reasons.intern(rejection_text(plugin)))


def _checked(answer: FilterAnswer, rows: int, reasons: ReasonTable) -> FilterAnswer:
    for name, column, most in (
        ("code_n", cast("object", answer.code_n), _CODES),
        ("reason_n", cast("object", answer.reason_n), len(reasons)),
    ):
        if not isinstance(column, np.ndarray) or column.dtype.kind not in "iu":
            raise WrongAnswerError(f"{name} of the answer is no array of whole numbers")
        if column.shape != (rows,):
            raise WrongAnswerError(f"{name} has shape {column.shape} instead of ({rows},)")
        if rows and (column.min() < 0 or column.max() >= most):
            raise WrongAnswerError(f"{name} has values outside 0 to {most - 1}")
    # Copies: the engine reads them later, when the plugin may be using its arrays again.
    return FilterAnswer(answer.code_n.astype(np.uint8), answer.reason_n.astype(np.int32))


def as_pre_filter(answer: object, plugin: str) -> tuple[PreFilterResult | None, Status]:
    """Read a yes or no, alone or after a `PreFilterResult` or None."""
    if not isinstance(answer, tuple):
        return None, as_status(answer, plugin)
    if len(answer) != 2 or not isinstance(answer[0], PreFilterResult | None):
        raise _wrong(answer, "a Status, or (PreFilterResult or None, Status)")
    names: object = None if answer[0] is None else answer[0].node_names
    if names is not None and not (
        isinstance(names, frozenset) and all(isinstance(name, str) for name in names)
    ):
        raise _wrong(names, "a frozenset of node names")
    result = answer[0]
    if isinstance(names, frozenset):
        # The engine compares the names, which must run no code of the plugin.
        result = PreFilterResult(frozenset(map(str.__str__, names)))
    return result, as_status(answer[1], plugin)


def as_post_filter(answer: object, plugin: str) -> tuple[PostFilterResult | None, Status]:
    """Read (`PostFilterResult` or None, Status), or a Status alone."""
    if not isinstance(answer, tuple):
        return None, as_status(answer, plugin)
    if len(answer) != 2 or not isinstance(answer[0], PostFilterResult | None):
        raise _wrong(answer, "a Status, or (PostFilterResult or None, Status)")
    return answer[0], as_status(answer[1], plugin)


def as_permit(answer: object, plugin: str) -> tuple[Status, float]:
    """Read (Status, seconds to wait at most), or the Status alone where it does not wait."""
    if not isinstance(answer, tuple):
        status, seconds = as_status(answer, plugin), None
    elif len(answer) == 2:
        status, seconds = as_status(answer[0], plugin), answer[1]
    else:
        raise _wrong(answer, "a Status, or (Status, seconds)")
    if status.code is not Code.WAIT:
        return status, 0.0
    if isinstance(seconds, bool) or not isinstance(seconds, Real) or not float(seconds) >= 0:
        raise _wrong(answer, "(Status that says Wait, seconds to wait at most)")
    return status, float(seconds)


def as_placements(answer: object, plugin: str) -> tuple[Sequence[Placement], Status]:
    """Read (placements, Status)."""
    if isinstance(answer, tuple) and len(answer) == 2 and isinstance(answer[0], Sequence):
        placements, status = answer
        if all(isinstance(each, Placement) for each in placements):
            return placements, as_status(status, plugin)
    raise _wrong(answer, "(Placements, Status)")


def as_placement_scores(answer: object, plugin: str, count: int) -> tuple[ScoreArray, Status]:
    """Read (scores, Status); the scores are not looked at where the status is no success."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise _wrong(answer, f"({count} numbers, Status)")
    status = as_status(answer[1], plugin)
    return (as_scores(answer[0], count) if status.ok else np.zeros(count, np.int64)), status


class SortKeys:
    """Reads the keys of a QueueSort plugin: tuples that can all be compared with each other.

    Every key must be made of the same types as the first key.
    """

    def __init__(self) -> None:
        self._made_of: tuple[object, ...] | None = None

    def __call__(self, answer: object) -> tuple[Any, ...]:
        """Return the key."""
        if not isinstance(answer, tuple):
            raise _wrong(answer, "a tuple")
        made_of = tuple(_made_of(part) for part in answer)
        if self._made_of is None:
            self._made_of = made_of
        elif made_of != self._made_of:
            raise _wrong(answer, f"a tuple made of ({_joined(self._made_of)}), as the first key")
        key: tuple[Any, ...] = _plain_key(answer)
        return key


def _made_of(part: object) -> object:
    if isinstance(part, tuple):
        return tuple(_made_of(inner) for inner in part)
    if isinstance(part, str):
        return "text"
    if isinstance(part, int | float | np.integer | np.floating) and not math.isnan(float(part)):
        return "number"
    raise _wrong(part, "numbers, texts and tuples of them in a key")


def _plain_key(part: Any) -> Any:
    """Return a part of a key without classes of the plugin, whose comparisons are code."""
    if isinstance(part, tuple):
        return tuple(map(_plain_key, part))
    if isinstance(part, str):
        return str.__str__(part)
    if isinstance(part, np.number):
        return part.item()
    return float.__float__(part) if isinstance(part, float) else int.__int__(part)


def _joined(made_of: tuple[object, ...]) -> str:
    return ", ".join(f"({_joined(m)})" if isinstance(m, tuple) else str(m) for m in made_of)


def _texts(reasons: object) -> TypeGuard[tuple[str, ...]]:
    return type(reasons) is tuple and all(isinstance(text, str) for text in reasons)


def _wrong(answer: object, understood: str) -> WrongAnswerError:
    shown = repr(answer)
    if len(shown) > 80:
        shown = f"{shown[:77]}..."
    return WrongAnswerError(f"plugin answered {shown}; understood is {understood}")
