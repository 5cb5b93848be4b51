"""The kinds of the group ``apiextensions.k8s.io``.

Place in the flow: one table of `moorage.apiserver.kinds.registry`. The module
`moorage.apiserver.custom.definitions` acts on stored definitions.
"""

from __future__ import annotations

from moorage.api import resources
from moorage.apiserver.kinds import check_definition
from moorage.apiserver.kinds.served import ServedKind

KINDS = (
    ServedKind(
        resource=resources.CUSTOM_RESOURCE_DEFINITIONS,
        acted_on_by="the server, which serves their kinds",
        columns=check_definition.COLUMNS,
        cells=check_definition.cells,
        defaults=check_definition.default_definition,
        on_create=check_definition.prepare_definition,
        settle=check_definition.complete_definition,
        has_status=True,
        open_status=(),
        counts_generations=True,
        check=check_definition.check_definition,
        warn=check_definition.warnings,
    ),
)
