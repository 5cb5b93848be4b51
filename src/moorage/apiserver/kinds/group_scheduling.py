"""The kinds of the group ``scheduling.k8s.io``.

Place in the flow: one table of `moorage.apiserver.kinds.registry`.
"""

from __future__ import annotations

from moorage.api import resources
from moorage.apiserver.kinds import check_core, core_admission, core_columns, core_defaults
from moorage.apiserver.kinds.served import ServedKind

KINDS = (
    ServedKind(
        resource=resources.PRIORITY_CLASSES,
        acted_on_by="admission of pods",
        columns=core_columns.PRIORITY_CLASS_COLUMNS,
        cells=core_columns.priority_class_cells,
        defaults=core_defaults.default_priority_class,
        on_create=core_admission.prepare_priority_class,
        counts_generations=True,
        check=check_core.check_priority_class,
    ),
)
