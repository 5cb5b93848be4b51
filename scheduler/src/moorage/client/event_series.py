"""Chooses the Events to write: the first of a kind is created, repeats become a series.

Pure bookkeeping under the recorder (``events``): notes and times in, writes out.

Notes
-----
Mirrors kubernetes v1.36 client-go tools/events (event_broadcaster.go, event_recorder.go), but
keeps a bounded number of Events in mind.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from moorage.api.meta import ObjectReference
from moorage.base.clock import NS_PER_SECOND, rfc3339, rfc3339_micro

_SERIES_IDLE_NS = 6 * 60 * NS_PER_SECOND
_NOTE_BYTES_MAX = 1024  # the server refuses longer notes
_ELLIPSIS = " ..."
# Bounds memory: a Scheduled Event is kept 6 to 12 minutes, which at 1000 binds a second would be
# a gigabyte. An entry takes 1.7 kB (measured), so these are 35 MB.
_KNOWN_MAX = 20_000


class EventNote(msgspec.Struct, frozen=True, kw_only=True):
    """An occurrence, as its author reports it.

    Parameters
    ----------
    regarding
        The object that the Event is about.
    controller
        The reporting controller: a profile's scheduler name.
    instance
        The reporting instance; "" means ``<controller>-<host>``.
    type
        ``Normal`` or ``Warning``.
    reason, action
        Machine-readable words (``Scheduled``, ``Binding``).
    note
        Text for people; cut at 1024 bytes.
    related
        A second object, or None.
    by_note
        Whether another note is another Event, as where each occurrence has a cause of its own. Else
        a series keeps the note that it began with, as in kube-scheduler.
    """

    regarding: ObjectReference
    controller: str
    type: Literal["Normal", "Warning"]
    reason: str
    action: str
    note: str
    related: ObjectReference | None = None
    instance: str = ""
    by_note: bool = False


class EventWrite(msgspec.Struct, frozen=True):
    """A write to the API: create the Event, or patch its series.

    Parameters
    ----------
    namespace, name
        Of the Event.
    body
        The whole Event, to be created; also created when a patch finds the Event gone.
    changes
        The patch, or None to create.
    """

    namespace: str
    name: str
    body: dict[str, object]
    changes: dict[str, object] | None = None


class _Known:
    """An Event in the book."""

    __slots__ = ("body", "count", "event_ns", "last_ns", "name", "namespace")

    def __init__(self, namespace: str, name: str, body: dict[str, object], event_ns: int) -> None:
        self.namespace = namespace
        self.name = name
        self.body = body
        self.event_ns = event_ns
        self.last_ns = event_ns
        self.count = 1


class SeriesBook:
    """Turns notes into writes.

    Parameters
    ----------
    host
        Host name; the reporting instance is ``<controller>-<host>``.
    core
        Write core/v1 Events, for servers without events.k8s.io.
    known_max
        Most Events in the book. Beyond that, the Event longest not repeated is forgotten: its
        series stays as last written, and a repeat begins another series.
    """

    def __init__(self, *, host: str, core: bool = False, known_max: int = _KNOWN_MAX) -> None:
        self._host = host
        self._core = core
        self._known_max = known_max
        # The Event longest not repeated comes first.
        self._known: dict[EventNote, _Known] = {}
        self._last_ns = 0

    def __len__(self) -> int:
        return len(self._known)

    def observe(self, note: EventNote, *, now_ns: int) -> EventWrite | None:
        """Take a note in; return what to write, or None if a series only grew."""
        key = note if note.by_note else msgspec.structs.replace(note, note="")
        known = self._known.pop(key, None)
        if known is None:
            known = self._known[key] = self._new(note, now_ns)
            if len(self._known) > self._known_max:
                del self._known[next(iter(self._known))]
            return EventWrite(known.namespace, known.name, known.body)
        self._known[key] = known
        known.count += 1
        known.last_ns = now_ns
        # The older form has no series: every count is written.
        return self._patch(known) if known.count == 2 or self._core else None

    def refresh(self) -> list[EventWrite]:
        """Return a patch for each series: every 30 minutes each series is written again."""
        return [self._patch(known) for known in self._known.values() if known.count > 1]

    def finish(self, *, now_ns: int) -> list[EventWrite]:
        """Drop Events not repeated for six minutes; return the last patch of each series."""
        quiet = {
            key: known
            for key, known in self._known.items()
            if known.last_ns < now_ns - _SERIES_IDLE_NS
        }
        for key in quiet:
            del self._known[key]
        return [self._patch(known) for known in quiet.values() if known.count > 1]

    def _new(self, note: EventNote, now_ns: int) -> _Known:
        # Two Events about one object in one nanosecond would get one name.
        self._last_ns = max(now_ns, self._last_ns + 1)
        namespace = note.regarding.namespace or "default"
        name = f"{note.regarding.name}.{self._last_ns:x}"
        build = _core_body if self._core else _body
        body = build(note, name=name, host=self._host, now_ns=now_ns)
        return _Known(namespace, name, body, now_ns)

    def _patch(self, known: _Known) -> EventWrite:
        changes: dict[str, object]
        if self._core:
            changes = {"count": known.count, "lastTimestamp": rfc3339(known.last_ns)}
        else:
            last = rfc3339_micro(known.last_ns)
            changes = {"series": {"count": known.count, "lastObservedTime": last}}
        return EventWrite(known.namespace, known.name, {**known.body, **changes}, changes)


def shorten(note: str) -> str:
    """Cut a text to 1024 bytes as kube-scheduler does, never inside a character."""
    raw = note.encode()
    if len(raw) <= _NOTE_BYTES_MAX:
        return note
    return raw[: _NOTE_BYTES_MAX - len(_ELLIPSIS)].decode("utf-8", "ignore") + _ELLIPSIS


def _body(note: EventNote, *, name: str, host: str, now_ns: int) -> dict[str, object]:
    body: dict[str, object] = {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": note.regarding.namespace or "default"},
        "eventTime": rfc3339_micro(now_ns),
        "reportingController": note.controller,
        "reportingInstance": note.instance or f"{note.controller}-{host}",
        "action": note.action,
        "reason": note.reason,
        "regarding": msgspec.to_builtins(note.regarding),
        "note": shorten(note.note),
        "type": note.type,
    }
    if note.related is not None:
        body["related"] = msgspec.to_builtins(note.related)
    return body


def _core_body(note: EventNote, *, name: str, host: str, now_ns: int) -> dict[str, object]:
    body: dict[str, object] = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": note.regarding.namespace or "default"},
        "involvedObject": msgspec.to_builtins(note.regarding),
        "reason": note.reason,
        "message": shorten(note.note),
        "source": {"component": note.controller, "host": note.instance or host},
        "firstTimestamp": rfc3339(now_ns),
        "lastTimestamp": rfc3339(now_ns),
        "count": 1,
        "type": note.type,
        "action": note.action,
        "reportingComponent": note.controller,
        "reportingInstance": note.instance or f"{note.controller}-{host}",
    }
    if note.related is not None:
        body["related"] = msgspec.to_builtins(note.related)
    return body
