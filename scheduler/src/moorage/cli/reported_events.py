"""Reads the parts of an Event that people look for, in either of its two forms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from moorage.api.resources import CORE_EVENTS
from moorage.client.requests import Selection
from moorage.client.writes import Client

Obj = Mapping[str, Any]


class ReportedEvent(msgspec.Struct, frozen=True):
    """An Event in short.

    Parameters
    ----------
    type, reason, message
        As in the Event.
    source
        The component that reports it.
    count
        How often it happened.
    last
        When it happened last, RFC 3339; "" where that is not told.
    """

    type: str
    reason: str
    message: str
    source: str
    count: int
    last: str


def reported_event(event: Obj) -> ReportedEvent:
    """Return an Event in short."""
    series = event.get("series") or {}
    return ReportedEvent(
        type=str(event.get("type", "")),
        reason=str(event.get("reason", "")),
        message=str(event.get("message", "")).strip(),
        source=str(
            event.get("reportingComponent") or (event.get("source") or {}).get("component", "")
        ),
        count=max(int(series.get("count") or 0), int(event.get("count") or 0), 1),
        last=last_time(event),
    )


def last_time(event: Obj) -> str:
    """Return when an Event happened last, RFC 3339; "" where that is not told."""
    series = event.get("series") or {}
    return str(
        series.get("lastObservedTime")
        or event.get("lastTimestamp")
        or event.get("eventTime")
        or event["metadata"].get("creationTimestamp")
        or ""
    )


async def events_about(
    client: Client, kind: str, name: str, *, namespace: str = "", uid: str = ""
) -> list[Obj]:
    """Return the Events about an object, the newest last.

    Parameters
    ----------
    uid
        Of the object; "" for any object of that name.

    Raises
    ------
    ApiError, TransportError
        The server does not list them.
    """
    wanted = [f"involvedObject.name={name}", f"involvedObject.kind={kind}"]
    if uid:
        wanted.append(f"involvedObject.uid={uid}")
    selection = Selection(namespace, field_selector=",".join(wanted))
    listed: Any = await client.list(CORE_EVENTS, selection)
    return sorted(listed["items"], key=last_time)
