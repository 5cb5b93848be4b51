"""Records in a word, for the tests of the ring and of the file."""

from __future__ import annotations

from typing import Any

import numpy as np

from moorage.engine.answers import CachedPart, ScoreNotes
from moorage.engine.filters.filter_results import FilterResults, RecordedAnswer
from moorage.engine.notes.attempt_note import AttemptNote, ShapeNote
from moorage.engine.notes.filtered_nodes import FilteredNodes, MoreRejections, NodeNames
from moorage.engine.notes.score_log import ScoreLog
from moorage.framework.status import Code, FilterAnswer
from moorage.observe.records.record import AttemptRecord, Failure


def names_of(count: int = 100) -> NodeNames:
    """Names of nodes, for one ring: it counts the holders in them."""
    return NodeNames(tuple(f"n{index}" for index in range(count)))


def filtered(names: NodeNames | None = None) -> FilteredNodes:
    names = names_of() if names is None else names
    texts: Any = None
    return FilteredNodes(names, None, FilterResults(len(names.names)), texts)


def answered(count: int) -> RecordedAnswer:
    """An answer that rejects every second node for one of two reasons."""
    first, second = (np.arange(count) % each == 0 for each in (2, 4))
    answer = FilterAnswer.of_checks(
        (second, Code.UNSCHEDULABLE, 1), (first, Code.UNSCHEDULABLE_AND_UNRESOLVABLE, 2)
    )
    return 3, first, answer


def log_of(names: NodeNames) -> ScoreLog:
    """Scores of three plugins."""
    return ScoreLog(np.zeros((3, len(names.names)), np.int64))


def shaped(filtered: FilteredNodes, log: ScoreLog | None = None) -> ShapeNote:
    """What the notes of a shape share."""
    parts = tuple(CachedPart(name, 1, True, None) for name in ("A", "B", "C"))
    return ShapeNote.from_results(filtered, ScoreNotes(() if log is None else parts, log))


def noted(shape: ShapeNote, more: tuple[MoreRejections, ...] = ()) -> AttemptNote:
    """A note as of now; its best nodes are looked for when somebody asks."""
    length = -1 if shape.log is None else shape.log.length
    return AttemptNote(frozenset(), shape, more, 0, length, None)


def record(number: int, pod: str = "p", *, attempt: int = 1, **fields: Any) -> AttemptRecord:
    given: dict[str, Any] = {
        "number": number,
        "uid": f"uid-{pod}",
        "key": ("default", pod),
        "profile": "default-scheduler",
        "attempt": attempt,
        "at_ns": number,
        "took_ns": 7,
        "before": (),
        "rejectors": frozenset(),
        "node": "",
        "total": None,
        "feasible": 0,
        "evaluated": 100,
        "ties": 0,
        "note": None,
        "failure": Failure("reject", "no room"),
    }
    return AttemptRecord(**{**given, **fields})
