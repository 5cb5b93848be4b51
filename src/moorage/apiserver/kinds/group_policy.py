"""The kinds of the group ``policy``.

Place in the flow: one table of `moorage.apiserver.kinds.registry`.
"""

from __future__ import annotations

from moorage.api import resources
from moorage.apiserver.kinds import check_workload, core_columns, core_defaults
from moorage.apiserver.kinds.served import ServedKind

KINDS = (
    ServedKind(
        resource=resources.POD_DISRUPTION_BUDGETS,
        acted_on_by="the disruption controller, eviction, preemption",
        columns=core_columns.BUDGET_COLUMNS,
        cells=core_columns.budget_cells,
        defaults=core_defaults.default_disruption_budget,
        has_status=True,
        counts_generations=True,
        check=check_workload.check_disruption_budget,
    ),
)
