"""The answer about capacity as text for people; pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from moorage.cli.rows.text import Shown, folded_rows, wrapped
from moorage.service.questions.folding.folds import Fold
from moorage.what_if.capacity.room import Need, Room

_INDENT: Final = "  "
_SIZE: Final = ("cpu", "memory")
_NO_END: Final = 10_000
"""A width, characters, at which no message is cut."""
NO_SHAPE: Final = "There is no node whose shape could be tried; --shape gives one."
# Names of nodes in one line.
_NAMES_MOST: Final = 5


class CapacityReport(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The answer of the command.

    Parameters
    ----------
    question
        What is counted, in words; "" for nothing.
    room, needs, left_out, limit, waiting
        As of `moorage.what_if.wire.Capacity`.
    source
        Where the answer comes from, in words.
    """

    question: str = msgspec.field(name="asked")
    room: Room | None
    needs: tuple[Need, ...]
    left_out: tuple[str, ...]
    limit: str
    waiting: tuple[Fold, ...]
    source: str


def report(answer: CapacityReport, shown: Shown | None) -> str:
    """Return how many pods fit, what binds, and which nodes would place what waits.

    Parameters
    ----------
    shown
        How pods become rows; None for sentences and messages in full.
    """
    parts: list[str] = []
    if answer.room is not None:
        parts += _sentences(room_sentences(answer.question, answer.room), shown)
    if answer.needs or answer.waiting:
        parts += [""] * bool(parts) + _needs(answer.needs, answer.waiting, shown)
    parts = parts or ["No pod waits."] * (not answer.left_out)
    if answer.left_out:
        parts += [""] * bool(parts)
        parts += _sentences(left_out_sentences(answer.left_out, answer.limit), shown)
    return "\n".join([*parts, "", *wrapped(answer.source, shown)] if answer.source else parts)


def _sentences(sentences: Sequence[str], shown: Shown | None) -> list[str]:
    return [line for each in sentences for line in wrapped(each, shown)]


def room_sentences(question: str, room: Room) -> list[str]:
    """Return how many pods fit, and why the next one does not.

    Parameters
    ----------
    question
        What is counted, in words.
    """
    more = "at least " if room.reached_most else ""
    what = (
        question.replace("pods", "pod", 1).replace("mixes", "mix", 1) if room.fit == 1 else question
    )
    parts = [f"{more}{room.fit} more {what} {'fits' if room.fit == 1 else 'fit'}"]
    if room.pods != room.fit:
        parts[0] += f", {room.pods} pods with those of the mix that is cut short"
    if room.limit:
        return [*parts, f"The count was ended there: {room.limit}."]
    if room.reached_most:
        return [*parts, "The count was ended there; --most sets how far it goes."]
    if room.refused:
        return [*parts, f"The next one is refused by its namespace: {room.message}"]
    parts.append(f"The next one finds no node: {room.message}")
    if room.reasons:
        reason, nodes = next(iter(room.reasons.items()))
        where = "1 node" if nodes == 1 else f"{nodes} nodes"
        parts.append(f"What binds first: {reason}, on {where}")
    return parts


def _needs(needs: Sequence[Need], waiting: Sequence[Fold], shown: Shown | None) -> list[str]:
    parts = [waiting_text(needs, waiting)]
    parts += _rows(waiting, shown)
    if not needs:
        parts += ["", *wrapped(NO_SHAPE, shown)]
    for text, rows in need_answers(needs, waiting):
        parts += ["", *wrapped(f"{text}{':' * bool(rows)}", shown), *_rows(rows, shown)]
    return parts


def need_answers(
    needs: Sequence[Need], waiting: Sequence[Fold]
) -> Iterator[tuple[str, Sequence[Fold]]]:
    """Yield how many nodes of each shape place how many pods, and the rows of those that wait then.

    Where all wait for the reasons that `waiting` has already, the text says so, and there are no
    rows.
    """
    causes = _causes(waiting)
    for need in needs:
        if not need.limit and need.waiting and _causes(need.waiting) == causes:
            yield f"{_need_text(need)}, for the same reasons", ()
        else:
            yield _need_text(need), need.waiting


def _causes(rows: Sequence[Fold]) -> set[tuple[str, ...]]:
    """Return which pods wait and why, in any order of the rows."""
    return {
        (each.namespace, each.owner, each.group, each.reason, each.message, str(each.pods))
        for each in rows
    }


def waiting_text(needs: Sequence[Need], waiting: Sequence[Fold]) -> str:
    """Return how many pods wait."""
    pods = needs[0].placed + needs[0].left if needs else sum(each.pods for each in waiting)
    return f"Pods that wait: {pods}"


def _need_text(need: Need) -> str:
    """Return how many nodes of a shape place how many of the pods that wait."""
    shape = _shape(need)
    nodes = "1 more node" if need.nodes == 1 else f"{need.nodes} more nodes"
    placing = "places" if need.nodes == 1 else "place"
    if not need.left:
        return f"{nodes} {shape} {placing} all of them"
    if need.placed:
        ended = need.limit or "further ones place none of the others"
        return f"{nodes} {shape} {placing} {need.placed}; {ended}"
    return f"nodes {shape} placed none; {need.limit}" if need.limit else f"nodes {shape} place none"


def _rows(rows: Sequence[Fold], shown: Shown | None) -> list[str]:
    return folded_rows(rows, shown or Shown(limit=len(rows), width=_NO_END), indent=_INDENT)


def _shape(need: Need) -> str:
    """Return a shape in words, with what it does not share with shapes of its size."""
    size = [f"{name}={need.allocatable[name]}" for name in _SIZE if name in need.allocatable]
    differs = [
        f"{name.rpartition('/')[2]}={value}" if value else f"no {name.rpartition('/')[2]}"
        for name, value in need.differs.items()
    ]
    size_text = ", ".join(size)
    if need.like in size_text or "=" not in need.like:
        return f"like {need.like} ({', '.join([*size, *differs])})"
    return ", ".join([size_text, *differs])


def left_out_sentences(names: Sequence[str], limit: str) -> list[str]:
    """Return which shapes were not tried, and why."""
    shown = ", ".join(names[:_NAMES_MOST])
    more = f" and {len(names) - _NAMES_MOST} more" if len(names) > _NAMES_MOST else ""
    shapes = "1 shape of nodes was" if len(names) == 1 else f"{len(names)} shapes of nodes were"
    return [
        f"{shapes} left out, because {limit}: like {shown}{more}",
        "`--shape` tries a shape of your own.",
    ]
