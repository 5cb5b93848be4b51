"""The kinds of the group ``events.k8s.io``.

Place in the flow: one table of `moorage.apiserver.kinds.registry`.
"""

from __future__ import annotations

from moorage.api import resources
from moorage.apiserver.kinds import check_core, core_columns, core_defaults, fields, name_rules
from moorage.apiserver.kinds.served import ServedKind

KINDS = (
    ServedKind(
        resource=resources.EVENTS,
        columns=core_columns.EVENT_COLUMNS,
        cells=core_columns.event_cells,
        defaults=core_defaults.default_event,
        fields=fields.event_fields("regarding"),
        name_rule=name_rules.path_segment_name,
        check=check_core.check_event,
    ),
)
