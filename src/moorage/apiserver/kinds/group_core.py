"""The kinds of the core group.

Place in the flow: one table of `moorage.apiserver.kinds.registry`.
"""

from __future__ import annotations

from moorage.api import resources
from moorage.api.names import dns_label_faults
from moorage.apiserver.kind import ScalePaths
from moorage.apiserver.kinds import (
    check_core,
    check_pod,
    check_storage,
    check_workload,
    core_admission,
    core_columns,
    core_defaults,
    fields,
    name_rules,
    pod_admission,
    pod_columns,
    pod_defaults,
    storage_columns,
    workload_columns,
    workload_defaults,
)
from moorage.apiserver.kinds.served import ServedKind

KINDS = (
    ServedKind(
        resource=resources.PODS,
        columns=pod_columns.POD_COLUMNS,
        cells=pod_columns.pod_cells,
        defaults=pod_defaults.default_pod,
        status_defaults=pod_defaults.default_pod_status,
        on_create=pod_admission.prepare_pod,
        # prepare_pod writes the whole status itself.
        keeps_status=True,
        on_update=pod_admission.complete_pod,
        fields=fields.pod_fields,
        has_status=True,
        counts_generations=True,
        open_status=True,
        more_subresources=frozenset({"binding", "eviction"}),
        check=check_pod.check_pod,
        check_status=check_pod.check_pod_status,
    ),
    ServedKind(
        resource=resources.NODES,
        columns=core_columns.NODE_COLUMNS,
        cells=core_columns.node_cells,
        defaults=core_defaults.default_node,
        fields=fields.node_fields,
        has_status=True,
        keeps_status=True,
        open_status=True,
        check=check_core.check_node,
        check_status=check_core.check_node_status,
    ),
    ServedKind(
        resource=resources.NAMESPACES,
        columns=core_columns.NAMESPACE_COLUMNS,
        cells=core_columns.namespace_cells,
        defaults=core_defaults.default_namespace,
        on_create=core_admission.prepare_namespace,
        fields=fields.namespace_fields,
        name_rule=dns_label_faults,
        has_status=True,
    ),
    ServedKind(
        resource=resources.SERVICES,
        columns=core_columns.SERVICE_COLUMNS,
        cells=core_columns.service_cells,
        defaults=core_defaults.default_service,
        on_create=core_admission.prepare_service,
        on_update=core_admission.complete_service,
        fields=fields.service_fields,
        name_rule=name_rules.service_name,
        has_status=True,
        check=check_core.check_service,
    ),
    ServedKind(
        resource=resources.CONFIG_MAPS,
        columns=core_columns.CONFIG_MAP_COLUMNS,
        cells=core_columns.config_map_cells,
        check=check_core.check_config_map,
    ),
    ServedKind(
        resource=resources.SECRETS,
        columns=core_columns.SECRET_COLUMNS,
        cells=core_columns.secret_cells,
        defaults=core_defaults.default_secret,
        fields=fields.secret_fields,
        check=check_core.check_secret,
    ),
    ServedKind(
        resource=resources.SERVICE_ACCOUNTS,
        columns=core_columns.SERVICE_ACCOUNT_COLUMNS,
        cells=core_columns.service_account_cells,
    ),
    ServedKind(
        resource=resources.CORE_EVENTS,
        columns=core_columns.EVENT_COLUMNS,
        cells=core_columns.event_cells,
        defaults=core_defaults.default_event,
        fields=fields.event_fields("involvedObject"),
        name_rule=name_rules.path_segment_name,
        check=check_core.check_event,
    ),
    ServedKind(
        resource=resources.REPLICATION_CONTROLLERS,
        columns=workload_columns.REPLICAS_COLUMNS,
        cells=workload_columns.replication_controller_cells,
        defaults=workload_defaults.default_replication_controller,
        fields=fields.replica_fields,
        scale=ScalePaths(),
        has_status=True,
        counts_generations=True,
        check=check_workload.check_replication_controller,
    ),
    ServedKind(
        resource=resources.PERSISTENT_VOLUMES,
        columns=storage_columns.VOLUME_COLUMNS,
        cells=storage_columns.volume_cells,
        defaults=core_defaults.default_persistent_volume,
        has_status=True,
        check=check_storage.check_volume,
    ),
    ServedKind(
        resource=resources.PERSISTENT_VOLUME_CLAIMS,
        columns=storage_columns.CLAIM_COLUMNS,
        cells=storage_columns.claim_cells,
        defaults=core_defaults.default_claim,
        on_create=core_admission.prepare_claim,
        has_status=True,
        check=check_storage.check_claim,
    ),
)
