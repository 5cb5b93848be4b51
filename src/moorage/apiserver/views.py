"""Events in two API versions over one store; every other kind is stored as it is served.

A `Served` pairs a kind with the shelf its objects lie on and with the translation between the
form a client sees and the form stored. Events are stored as core/v1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from moorage.apiserver.kind import Kind, Obj
from moorage.apiserver.record import Record
from moorage.apiserver.status import unknown_path

_encode = msgspec.json.Encoder().encode

# core/v1 name -> events.k8s.io/v1 name, of the fields that differ
# (kubernetes v1.36 pkg/apis/events/v1/conversion.go).
_EVENT_FIELDS: Mapping[str, str] = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_EVENT_FIELDS_BACK = {new: core for core, new in _EVENT_FIELDS.items()}
EVENTS = "events"
EVENTS_API = "events.k8s.io/v1"


def event_to_core(obj: Obj) -> Obj:
    """Return an events.k8s.io/v1 event as core/v1; top-level keys are renamed, values shared."""
    core = {_EVENT_FIELDS_BACK.get(key, key): value for key, value in obj.items()}
    core["apiVersion"] = "v1"
    # Core events always show these, empty or not.
    core.setdefault("involvedObject", {})
    core.setdefault("source", {})
    core.setdefault("reportingComponent", "")
    core.setdefault("reportingInstance", "")
    for name in ("firstTimestamp", "lastTimestamp"):
        core.setdefault(name, None)
    return core


def event_from_core(obj: Obj) -> Obj:
    """Return a core/v1 event as events.k8s.io/v1; top-level keys are renamed, values shared."""
    new = {_EVENT_FIELDS.get(key, key): value for key, value in obj.items()}
    new["apiVersion"] = EVENTS_API
    return new


class Served(msgspec.Struct, frozen=True):
    """One resource as a client addresses it.

    Parameters
    ----------
    kind
        Its rules.
    stored_kind
        Rules of the form stored; another kind only for events.k8s.io events.
    """

    kind: Kind
    stored_kind: Kind

    @property
    def shelf(self) -> str:
        """Name of the shelf its objects lie on."""
        return self.stored_kind.resource.qualified

    @property
    def translated(self) -> bool:
        """Whether what is stored differs from what is served."""
        return self.kind is not self.stored_kind

    def to_stored(self, obj: Obj) -> Obj:
        """Return the stored form of a served object."""
        return event_to_core(obj) if self.translated else obj

    def from_stored(self, obj: Obj) -> Obj:
        """Return the served form of a stored object."""
        return event_from_core(obj) if self.translated else obj

    def data(self, record: Record) -> bytes:
        """Return a record's bytes in the served form."""
        if not self.translated:
            return record.data
        return _encode(event_from_core(record.decode()))

    def fields(self, stored: Obj) -> dict[str, str]:
        """Return the values field selectors may ask for."""
        return self.stored_kind.selectable_fields(stored)

    def stored_field(self, label: str) -> str:
        """Translate a field selector's label to the stored form's."""
        if not self.translated:
            return label
        head, dot, rest = label.partition(".")
        return _EVENT_FIELDS_BACK.get(head, head) + dot + rest


class Catalog:
    """Every served resource, found by group, version and plural.

    Parameters
    ----------
    kinds
        One for each served resource; events may be there twice (core and events.k8s.io).
    """

    def __init__(self, kinds: Sequence[Kind]) -> None:
        self.kinds = tuple(kinds)
        by_path = {(k.resource.api_version, k.resource.plural): k for k in self.kinds}
        core_events = by_path.get(("v1", EVENTS))
        self._served: dict[tuple[str, str], Served] = {}
        for path, kind in by_path.items():
            stored = kind
            if path == (EVENTS_API, EVENTS) and core_events is not None:
                stored = core_events
            self._served[path] = Served(kind, stored)

    def find(self, api_version: str, plural: str) -> Served:
        """Return a served resource.

        Raises
        ------
        StatusError
            404: no such resource.
        """
        found = self._served.get((api_version, plural))
        if found is None:
            raise unknown_path()
        return found

    def by_plural(self, plural: str) -> Served:
        """Return a served resource by plural alone; the first by API version where two share it.

        Raises
        ------
        KeyError
            No resource has this plural.
        """
        for api_version, name in sorted(self._served):
            if name == plural and not self._served[api_version, name].translated:
                return self._served[api_version, name]
        raise KeyError(plural)

    def shelves(self) -> list[Served]:
        """Return one served resource for each shelf, in order of (API version, plural)."""
        return [self._served[p] for p in sorted(self._served) if not self._served[p].translated]

    def api_versions(self) -> list[str]:
        """Return every served API version, ``v1`` first, then sorted."""
        versions = {api_version for api_version, _ in self._served}
        return sorted(versions, key=lambda text: ("/" in text, text))
