"""The answer about capacity as text for people; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from moorage.what_if.room import Need, Room

# Names of nodes in one line.
_NAMES_MOST: Final = 5


def report(answer: Mapping[str, Any]) -> str:
    """Return how many pods fit, what binds, and which nodes would place what waits."""
    parts: list[str] = []
    if answer["room"] is not None:
        parts += _room(answer["asked"], answer["room"])
    if answer["needs"]:
        parts += ["", *_needs(answer["needs"])] if parts else _needs(answer["needs"])
    parts = parts or ["No pod waits."] * (not answer["leftOut"])
    if answer["leftOut"]:
        parts += [""] * bool(parts) + _left_out(answer["leftOut"], answer["limit"])
    return "\n".join([*parts, "", answer["source"]] if answer["source"] else parts)


def _room(question: str, room: Room) -> list[str]:
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


def _needs(needs: Sequence[Need]) -> list[str]:
    waiting = needs[0].placed + needs[0].left
    parts = [f"Pods that wait: {waiting}"]
    for need in needs:
        size = ", ".join(
            f"{name}={need.allocatable[name]}"
            for name in ("cpu", "memory")
            if name in need.allocatable
        )
        shape = f"like {need.like} ({size})" if need.like in size or "=" not in need.like else size
        nodes = "1 more node" if need.nodes == 1 else f"{need.nodes} more nodes"
        placing = "places" if need.nodes == 1 else "place"
        if not need.left:
            parts.append(f"  {nodes} {shape} {placing} all of them")
        elif need.placed:
            ended = need.limit or f"further ones place none, because {need.reason}"
            parts.append(f"  {nodes} {shape} {placing} {need.placed}; {ended}")
        elif need.limit:
            parts.append(f"  nodes {shape} placed none; {need.limit}")
        else:
            parts.append(f"  nodes {shape} place none, because {need.reason}")
    return parts


def _left_out(names: Sequence[str], limit: str) -> list[str]:
    """Return which shapes were not tried, and why."""
    shown = ", ".join(names[:_NAMES_MOST])
    more = f" and {len(names) - _NAMES_MOST} more" if len(names) > _NAMES_MOST else ""
    shapes = "1 shape of nodes was" if len(names) == 1 else f"{len(names)} shapes of nodes were"
    return [
        f"{shapes} left out, because {limit}: like {shown}{more}",
        "`--shape` tries a shape of your own.",
    ]
