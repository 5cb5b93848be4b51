"""The kinds of the group ``apps``.

Place in the flow: one table of `moorage.apiserver.kinds.registry`.
"""

from __future__ import annotations

from moorage.api import resources
from moorage.apiserver.kind import ScalePaths
from moorage.apiserver.kinds import check_workload, fields, workload_columns, workload_defaults
from moorage.apiserver.kinds.served import ServedKind

KINDS = (
    ServedKind(
        resource=resources.DEPLOYMENTS,
        acted_on_by="the deployment controller",
        # The labels of a deployment are kept as well (pkg/registry/apps/deployment/strategy.go).
        open_status=("annotations", "finalizers"),
        columns=workload_columns.DEPLOYMENT_COLUMNS,
        cells=workload_columns.deployment_cells,
        defaults=workload_defaults.default_deployment,
        scale=ScalePaths(),
        has_status=True,
        counts_generations=True,
        check=check_workload.check_deployment,
    ),
    ServedKind(
        resource=resources.REPLICA_SETS,
        acted_on_by="the replica set controller",
        columns=workload_columns.REPLICAS_COLUMNS,
        cells=workload_columns.replica_set_cells,
        defaults=workload_defaults.default_replica_set,
        fields=fields.replica_fields,
        scale=ScalePaths(),
        has_status=True,
        counts_generations=True,
        check=check_workload.check_replica_set,
    ),
    ServedKind(
        resource=resources.STATEFUL_SETS,
        acted_on_by="the stateful set controller",
        columns=workload_columns.STATEFUL_SET_COLUMNS,
        cells=workload_columns.stateful_set_cells,
        defaults=workload_defaults.default_stateful_set,
        scale=ScalePaths(),
        has_status=True,
        counts_generations=True,
        check=check_workload.check_stateful_set,
    ),
    ServedKind(
        resource=resources.DAEMON_SETS,
        acted_on_by="the daemon set controller",
        columns=workload_columns.DAEMON_SET_COLUMNS,
        cells=workload_columns.daemon_set_cells,
        defaults=workload_defaults.default_daemon_set,
        has_status=True,
        counts_generations=True,
        check=check_workload.check_daemon_set,
    ),
    ServedKind(
        resource=resources.CONTROLLER_REVISIONS,
        acted_on_by="the stateful and daemon set controllers",
        columns=workload_columns.REVISION_COLUMNS,
        cells=workload_columns.revision_cells,
        check=check_workload.check_revision,
    ),
)
