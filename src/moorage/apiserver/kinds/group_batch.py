"""The kinds of the group ``batch``.

Place in the flow: one table of `moorage.apiserver.kinds.registry`.
"""

from __future__ import annotations

from moorage.api import resources
from moorage.apiserver.kinds import (
    check_workload,
    core_admission,
    fields,
    workload_columns,
    workload_defaults,
)
from moorage.apiserver.kinds.served import ServedKind

KINDS = (
    ServedKind(
        resource=resources.JOBS,
        acted_on_by="the job controller",
        columns=workload_columns.JOB_COLUMNS,
        cells=workload_columns.job_cells,
        defaults=workload_defaults.default_job,
        on_create=core_admission.prepare_job,
        fields=fields.job_fields,
        has_status=True,
        counts_generations=True,
        check=check_workload.check_job,
    ),
    ServedKind(
        resource=resources.CRON_JOBS,
        acted_on_by="the cron job controller",
        columns=workload_columns.CRON_JOB_COLUMNS,
        cells=workload_columns.cron_job_cells,
        defaults=workload_defaults.default_cron_job,
        has_status=True,
        counts_generations=True,
        check=check_workload.check_cron_job,
    ),
)
