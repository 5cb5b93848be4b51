"""The kinds of the group ``events.k8s.io``: core events under newer names.

Place in the flow: one table of `moorage.apiserver.kinds.registry`. Events are stored as core/v1.
"""

from __future__ import annotations

from collections.abc import Mapping

from moorage.api import resources
from moorage.apiserver.kind import Obj, Translation
from moorage.apiserver.kinds import check_core, core_columns, core_defaults, fields, name_rules
from moorage.apiserver.kinds.served import ServedKind

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


KINDS = (
    ServedKind(
        resource=resources.EVENTS,
        acted_on_by="the server, which lets them expire",
        columns=core_columns.EVENT_COLUMNS,
        cells=core_columns.event_cells,
        defaults=core_defaults.default_event,
        fields=fields.event_fields("regarding"),
        name_rule=name_rules.path_segment_name,
        check=check_core.check_event,
        translation=Translation(
            stored=resources.CORE_EVENTS,
            to_stored=event_to_core,
            from_stored=event_from_core,
            renamed=_CORE_NAMES,
        ),
    ),
)
