"""Event, in both API versions: stored as core/v1, and served with newer names by events.k8s.io.

Mirrors kubernetes v1.36 pkg/apis/events/v1/conversion.go and pkg/apis/core/validation
(ValidateEventCreate, ValidateEventUpdate).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from moorage.api import resources
from moorage.kinds.cells import name_of, since
from moorage.kinds.kind import Column, FieldError, Obj, Translation, invalid, required
from moorage.kinds.metadata import immutable
from moorage.kinds.served import ServedKind
from moorage.kinds.tree import Json, attach, child, fill, number, text
from moorage.kinds.values.name_rules import path_segment_name
from moorage.kinds.values.packed_fields import packed

# core/v1 name -> events.k8s.io/v1 name, of the fields that differ
# (kubernetes v1.36 pkg/apis/events/v1/conversion.go).
_NAMES: Mapping[str, str] = {
    "involvedObject": "regarding",
    "message": "note",
    "source": "deprecatedSource",
    "firstTimestamp": "deprecatedFirstTimestamp",
    "lastTimestamp": "deprecatedLastTimestamp",
    "count": "deprecatedCount",
    "reportingComponent": "reportingController",
}
_CORE_NAMES = {new: core for core, new in _NAMES.items()}

# Only the series of an Event changes. The older API allows every change. Errors have the older
# names, but for the controller's.
_IMMUTABLE: Mapping[str, str] = {
    **{new: core for core, new in _NAMES.items() if core != "reportingComponent"},
    **{name: name for name in ("reason", "type", "eventTime", "action", "related")},
    **{name: name for name in ("reportingController", "reportingInstance")},
}


def event_to_core(obj: Obj) -> Obj:
    """Return an events.k8s.io/v1 event as core/v1; top-level keys are renamed, values shared."""
    core = {_CORE_NAMES.get(key, key): value for key, value in obj.items()}
    core["apiVersion"] = resources.CORE_EVENTS.api_version
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
    new = {_NAMES.get(key, key): value for key, value in obj.items()}
    new["apiVersion"] = resources.EVENTS.api_version
    return new


def _either(obj: Obj, *names: str) -> str:
    """Return the first text that is not empty: a field has a name in each version."""
    return next((found for name in names if (found := text(obj, *name.split(".")))), "")


def _default(obj: Json) -> None:
    if text(obj, "apiVersion").startswith("events.k8s.io/"):
        attach(obj, "regarding")
    else:
        attach(obj, "involvedObject")
        attach(obj, "source")
        fill(obj, {"reportingComponent": "", "reportingInstance": ""})


def _check(new: Obj, old: Obj | None) -> list[FieldError]:
    newer = text(new, "apiVersion").startswith("events.k8s.io/")
    about = "regarding" if newer else "involvedObject"
    home, namespace = text(new, "metadata", "namespace"), text(new, about, "namespace")
    errors = []
    # Events of cluster-scoped objects live in "default".
    if namespace != home and not (not namespace and home in ("default", "kube-system")):
        detail = "does not match event.namespace"
        errors.append(invalid(f"{about}.namespace", namespace, detail))
    if newer and old is None:
        names = ("eventTime", "reportingController", "reportingInstance", "action", "reason")
        errors += [required(name) for name in names if not text(new, name)]
        if text(new, "type") not in ("Normal", "Warning"):
            errors.append(invalid("type", "", "has invalid value: " + text(new, "type")))
    if newer and old is not None:
        errors += [
            immutable(field, new.get(name))
            for name, field in _IMMUTABLE.items()
            if (new.get(name) or None) != (old.get(name) or None)
        ]
    return errors


def _component(obj: Obj) -> str:
    reported = _either(obj, "reportingComponent", "reportingController")
    return _either(obj, "source.component", "deprecatedSource.component") or reported


_COLUMNS = (
    Column("Last Seen", description="Time since it happened last"),
    Column("Type", description="Normal or Warning"),
    Column("Reason", description="Why, in one word"),
    Column("Object", description="What it is about"),
    Column("Subobject", description="Part of the object", priority=1),
    Column("Source", description="Who reported it", priority=1),
    Column("Message", description="What happened"),
    Column("First Seen", description="Time since it happened first", priority=1),
    Column("Count", description="How often it happened", priority=1),
    Column("Name", format="name", description="Name of the Event", priority=1),
)


def _cells(obj: Obj, now_ns: int) -> list[Any]:
    about = child(obj, "involvedObject") or child(obj, "regarding")
    first = _either(obj, "firstTimestamp", "deprecatedFirstTimestamp", "eventTime")
    last = _either(
        obj, "lastTimestamp", "deprecatedLastTimestamp", "series.lastObservedTime", "eventTime"
    )
    counts = (number(obj, "count"), number(obj, "deprecatedCount"), number(obj, "series", "count"))
    kind, name = text(about, "kind").lower(), text(about, "name")
    return [
        since(last, now_ns),
        text(obj, "type"),
        text(obj, "reason"),
        f"{kind}/{name}" if name else kind,
        text(about, "fieldPath"),
        _source(obj),
        _either(obj, "message", "note").strip(),
        since(first, now_ns),
        str(next(filter(None, counts), 1)),
        name_of(obj),
    ]


def _source(obj: Obj) -> str:
    source = child(obj, "source") or child(obj, "deprecatedSource")
    host = text(source, "host")
    if not text(source, "component"):
        host = host or text(obj, "reportingInstance")
    component = _component(obj)
    return f"{component}, {host}" if host else component


_REFERENCE = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")


def _fields(about: str) -> Callable[[Obj], Mapping[str, str]]:
    """Return the function that reads what field selectors know, packed: there may be 50,000 Events.

    A scheduler writes an Event for each pod, so this reads each field once.
    """
    names = (
        "metadata.name",
        "metadata.namespace",
        "reason",
        "type",
        *(f"{about}.{key}" for key in _REFERENCE),
        "reportingComponent",
        "source",
    )

    def fields(obj: Obj) -> Mapping[str, str]:
        meta = child(obj, "metadata")
        regarding = child(obj, "involvedObject") or child(obj, "regarding")
        values = [
            text(meta, "name"),
            text(meta, "namespace"),
            text(obj, "reason"),
            text(obj, "type"),
            *(text(regarding, key) for key in _REFERENCE),
            _either(obj, "reportingComponent", "reportingController"),
            _component(obj),
        ]
        return packed(names, values)

    return fields


def _kind(about: str, resource: resources.ResourceType, **more: Any) -> ServedKind:
    """Return the kind in one version, which has the object that the Event is about in ``about``."""
    return ServedKind(
        resource=resource,
        acted_on_by="the server, which lets them expire",
        created_by_put=True,
        columns=_COLUMNS,
        cells=_cells,
        defaults=_default,
        fields=_fields(about),
        name_rule=path_segment_name,
        check=_check,
        **more,
    )


KINDS = (
    _kind("involvedObject", resources.CORE_EVENTS),
    _kind(
        "regarding",
        resources.EVENTS,
        translation=Translation(
            stored=resources.CORE_EVENTS,
            to_stored=event_to_core,
            from_stored=event_from_core,
            renamed=_CORE_NAMES,
        ),
    ),
)
