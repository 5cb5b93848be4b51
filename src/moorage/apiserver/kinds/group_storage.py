"""The kinds of the group ``storage.k8s.io``.

Place in the flow: one table of `moorage.apiserver.kinds.registry`.
"""

from __future__ import annotations

from moorage.api import resources
from moorage.apiserver.kinds import check_storage, core_defaults, storage_columns
from moorage.apiserver.kinds.served import ServedKind

KINDS = (
    ServedKind(
        resource=resources.STORAGE_CLASSES,
        acted_on_by="the volume controller, the scheduler",
        columns=storage_columns.STORAGE_CLASS_COLUMNS,
        cells=storage_columns.storage_class_cells,
        defaults=core_defaults.default_storage_class,
        check=check_storage.check_storage_class,
    ),
    ServedKind(
        resource=resources.CSI_NODES,
        acted_on_by="the scheduler",
        columns=storage_columns.CSI_NODE_COLUMNS,
        cells=storage_columns.csi_node_cells,
        defaults=core_defaults.default_csi_node,
        check=check_storage.check_csi_node,
    ),
    ServedKind(
        resource=resources.CSI_DRIVERS,
        acted_on_by="the scheduler",
        columns=storage_columns.CSI_DRIVER_COLUMNS,
        cells=storage_columns.csi_driver_cells,
        defaults=core_defaults.default_csi_driver,
        check=check_storage.check_csi_driver,
    ),
    ServedKind(
        resource=resources.CSI_STORAGE_CAPACITIES,
        acted_on_by="the scheduler",
        columns=storage_columns.STORAGE_CAPACITY_COLUMNS,
        cells=storage_columns.storage_capacity_cells,
        defaults=core_defaults.default_csi_storage_capacity,
        check=check_storage.check_storage_capacity,
    ),
    ServedKind(
        resource=resources.VOLUME_ATTACHMENTS,
        acted_on_by="the scheduler",
        columns=storage_columns.ATTACHMENT_COLUMNS,
        cells=storage_columns.attachment_cells,
        defaults=core_defaults.default_volume_attachment,
        has_status=True,
        open_status=(),
        check=check_storage.check_attachment,
    ),
)
