"""The kinds of the group ``coordination.k8s.io``.

Place in the flow: one table of `moorage.apiserver.kinds.registry`.
"""

from __future__ import annotations

from moorage.api import resources
from moorage.apiserver.kinds import check_core, core_columns, core_defaults
from moorage.apiserver.kinds.served import ServedKind

KINDS = (
    ServedKind(
        resource=resources.LEASES,
        acted_on_by="leader election, the node life controller",
        columns=core_columns.LEASE_COLUMNS,
        cells=core_columns.lease_cells,
        defaults=core_defaults.default_lease,
        check=check_core.check_lease,
    ),
)
