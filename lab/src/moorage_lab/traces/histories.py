"""Pods from a history: the Events of kubectl say when pods came, started and ended.

An Event says nothing of requests: those come from the template of the source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import msgspec

from moorage.api.codec import decode_untyped
from moorage_lab.traces.columns import Coming, bare_pod

_ENDS: Final = ("Killing", "Completed", "Preempted", "Evicted", "TaintManagerEviction", "Failed")
_TIMES: Final = ("firstTimestamp", "eventTime", "lastTimestamp")
_SERIES: Final = ("lastTimestamp", "eventTime", "firstTimestamp")


class _Life:
    """The moments that are known of a pod."""

    __slots__ = ("came", "ended", "started")

    def __init__(self, came: float) -> None:
        self.came = came
        self.started: float | None = None
        self.ended: float | None = None


def pods_of_events(
    items: Iterable[bytes | msgspec.Raw], template: Mapping[str, Any]
) -> Iterator[Coming | str]:
    """Yield the pods that Events tell of, the earliest first, and a sentence for each bad Event.

    Parameters
    ----------
    items
        JSON of objects; those that are no Events of pods are passed over.
    template
        A manifest with requests and whatever else the pods have.
    """
    lives: dict[tuple[str, str], _Life] = {}
    for number, item in enumerate(items, start=1):
        event: Any = decode_untyped(bytes(item))
        about = event.get("involvedObject") or event.get("regarding") or {}
        if event.get("kind") != "Event" or about.get("kind") != "Pod":
            continue
        try:
            first, last = _time(event, _TIMES), _time(event, _SERIES)
        except ValueError as problem:
            yield f"event {number}: {problem}"
            continue
        life = lives.setdefault((about.get("namespace") or "default", about["name"]), _Life(first))
        life.came = min(life.came, first)
        if event.get("reason") == "Scheduled" and life.started is None:
            life.started = first
        elif event.get("reason") in _ENDS:
            life.ended = last if life.ended is None else max(life.ended, last)
    for (namespace, name), life in sorted(lives.items(), key=lambda each: (each[1].came, each[0])):
        manifest = bare_pod(template, name)
        manifest["metadata"]["namespace"] = namespace
        runs = None
        if life.ended is not None and life.started is not None and life.ended >= life.started:
            runs = life.ended - life.started
        yield Coming(manifest, life.came, runs)


def _time(event: Mapping[str, Any], fields: Iterable[str]) -> float:
    for field in fields:
        text = event.get(field)
        if text:
            return datetime.fromisoformat(str(text)).timestamp()
    raise ValueError("it has no time")
