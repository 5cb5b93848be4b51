"""The pods of a course as rows, sorted by what happens to them; pure."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import msgspec

from moorage.api.reasons.codes import code_of_message
from moorage.service.questions.folding.folds import Fold
from moorage.service.questions.folding.group_reason import with_group_reasons
from moorage.what_if.consequences import (
    ChangeComparison,
    End,
    Loss,
    Move,
    NotEvicted,
    Start,
    Waiting,
)

_Affected: TypeAlias = Start | Move | Waiting | Loss | End | NotEvicted


class Section(msgspec.Struct, frozen=True):
    """Pods with one fate.

    Parameters
    ----------
    title
        The fate in words, behind which the number of pods stands.
    rows
        A row for each pod.
    place
        The heading of the places of the rows.
    """

    title: str
    rows: list[Fold]
    place: str = "node"


def sections_of(course: ChangeComparison) -> Iterator[Section]:
    """Yield what happens to pods; a section may be empty."""
    yield Section("Start without the change, too", [_row(e, e.node) for e in course.anyway])
    yield Section("Start", [_row(e, e.node) for e in course.starts])
    yield from _moving(course)
    yield from _lost(course)
    yield Section("End", [_row(each) for each in course.ended])
    yield Section(
        "Are not evicted, kubectl drain would wait",
        [_row(each, each.node, each.reason) for each in course.not_evicted],
    )
    newly = [_waiting(each, each.was.rpartition(" on ")[2]) for each in course.newly_pending]
    rows = with_group_reasons([*newly, *(_waiting(each) for each in course.still_pending)])
    yield Section("Have no node any more, or none at first", rows[: len(newly)], place="was")
    yield Section("Wait as before", rows[len(newly) :])


def _moving(course: ChangeComparison) -> Iterator[Section]:
    moving = [each for each in course.moves if not each.evicted_by]
    evicted: list[Move | Waiting] = [each for each in course.moves if each.evicted_by]
    evicted += [each for each in course.newly_pending if each.evicted_by]
    yield Section("Move", [_row(each, _way(each)) for each in moving], place="from -> to")
    yield Section(
        "Are evicted",
        [
            _row(
                each,
                _way(each) if isinstance(each, Move) else f"{each.was.rpartition(' on ')[2]} -> -",
                f"for {each.evicted_by}",
            )
            for each in evicted
        ],
        place="from -> to",
    )


def _lost(course: ChangeComparison) -> Iterator[Section]:
    ownerless, failed, unknown = list[Fold](), list[Fold](), list[Fold]()
    for each in course.lost:
        rows = failed if each.job_failure else unknown if each.unknown_owner else ownerless
        message = (
            each.job_failure
            or each.unknown_owner
            or f"evicted for {each.evicted_by}" * bool(each.evicted_by)
        )
        rows.append(_row(each, each.node, message))
    yield Section("Are lost, for they have no owner", ownerless)
    yield Section("Are lost, for their Job fails", failed)
    yield Section("May be lost, for nobody knows whether their owner makes others", unknown)


def _waiting(each: Waiting, was: str = "") -> Fold:
    row = _row(each, was, each.reason)
    return msgspec.structs.replace(row, reason=code_of_message(each.reason))


def _way(move: Move) -> str:
    return f"{move.from_node} -> {move.to_node}"


def _row(each: _Affected, place: str = "", message: str = "") -> Fold:
    namespace, _, name = each.pod.partition("/")
    return Fold(
        namespace=namespace,
        owner=each.owner,
        group=each.group,
        names=(name,),
        queues={place: 1} if place else {},
        message=message,
    )
