"""The answer of ``moorage queue`` with pods that wait alike as one row."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, cast, get_args

import msgspec

from moorage.base.errors import UsageError
from moorage.service.questions.answers import QueueAnswer, QueuedPod
from moorage.service.questions.folding.folds import By, Fold, Sort, first_folds, fold
from moorage.service.questions.question import Parameter, QuestionParameters

ROWS: Final = 500
"""Most rows of an answer, a guess: a few hundred kilobytes."""

FOLDING: Final = (
    Parameter(
        name="by",
        description="What makes pods one row: their owner, group and reason (owner), or one of "
        "these. Rows of several namespaces stay apart. none: every pod is listed by itself.",
        schema={"type": "string", "enum": list(get_args(By)), "default": "none"},
    ),
    Parameter(
        name="sort",
        description="With by: what comes first: the longest wait, the highest priority, or the "
        "most pods.",
        schema={"type": "string", "enum": list(get_args(Sort)), "default": "pods"},
    ),
)
"""The parameters of the question that `folded_answer` reads."""


def folded_answer(answer: QueueAnswer, parameters: QuestionParameters) -> QueueAnswer:
    """Return an answer with rows instead of pods, as the parameters of its question say.

    Raises
    ------
    UsageError
        A parameter has no such value.
    """
    by = cast("By", _choice(parameters, "by", get_args(By), "none"))
    sort = cast("Sort", _choice(parameters, "sort", get_args(Sort), "pods"))
    if by == "none":
        return answer
    rows = fold(rows_of(answer.pods), by=by, within_namespaces=True, sort=sort)
    shown = first_folds(rows, ROWS)
    return msgspec.structs.replace(
        answer,
        pods=(),
        folds=shown.folds,
        rows_left=shown.rows_left,
        pods_left=shown.pods_left,
    )


def rows_of(pods: Iterable[QueuedPod]) -> list[Fold]:
    """Return a row for each waiting pod, to be folded."""
    return [
        Fold(
            namespace=pod.namespace,
            owner=pod.owner,
            group=pod.group,
            reason=pod.reason,
            names=(pod.name,),
            queues={pod.queue: 1},
            oldest=pod.first_queued or pod.since,
            priority=pod.priority,
            message=pod.message,
        )
        for pod in pods
    ]


def _choice(
    parameters: QuestionParameters, name: str, choices: tuple[str, ...], default: str
) -> str:
    value = parameters.get(name, default)
    if value not in choices:
        raise UsageError(f"{name} is one of {', '.join(choices)}, not {value[:40]!r}")
    return value
