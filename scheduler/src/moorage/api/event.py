"""Events, in the events.k8s.io/v1 form (`Event`) and the core/v1 form (`CoreEvent`).

A server keeps one object and shows it in both forms.
"""

from __future__ import annotations

from moorage.api.meta import ApiObject, ApiStruct, ObjectReference


class EventSource(ApiStruct, frozen=True, kw_only=True):
    """The reporter of an Event, in the older form."""

    component: str = ""
    host: str = ""


class EventSeries(ApiStruct, frozen=True, kw_only=True):
    """A repeated Event: how often, and when last."""

    count: int = 0
    last_observed_time: str | None = None


class Event(ApiObject, frozen=True, kw_only=True):
    """events.k8s.io/v1 Event; ``deprecated_*`` fields are the extra fields of the core form."""

    event_time: str | None = None
    series: EventSeries | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    action: str = ""
    reason: str = ""
    regarding: ObjectReference = ObjectReference()
    related: ObjectReference | None = None
    note: str = ""
    type: str = ""
    deprecated_source: EventSource = EventSource()
    deprecated_first_timestamp: str | None = None
    deprecated_last_timestamp: str | None = None
    deprecated_count: int = 0


class CoreEvent(ApiObject, frozen=True, kw_only=True):
    """core/v1 Event."""

    involved_object: ObjectReference = ObjectReference()
    reason: str = ""
    message: str = ""
    source: EventSource = EventSource()
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    count: int = 0
    type: str = ""
    event_time: str | None = None
    series: EventSeries | None = None
    action: str = ""
    related: ObjectReference | None = None
    # The one place where the core form breaks its own naming: `reportingComponent`.
    reporting_component: str = ""
    reporting_instance: str = ""
