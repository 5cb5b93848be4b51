"""TopologyPlacementGenerator: a group with a topology constraint is placed in one domain.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/topologyaware``.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from moorage.framework.group import Placement
from moorage.framework.handle import Handle
from moorage.framework.status import SUCCESS, Status, error
from moorage.snapshot.labels import ABSENT, LabelColumn
from moorage.snapshot.pod_groups import GroupKey, GroupTerms


class TopologyPlacementGenerator:
    """PlacementGenerate plugin; takes no arguments."""

    name = "TopologyPlacementGenerator"

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        self._snapshot = handle.snapshot

    def generate_placements(
        self, key: GroupKey, terms: GroupTerms | None
    ) -> tuple[Sequence[Placement], Status]:
        """Return one placement for each value of the label, ordered by value.

        A group without a constraint gets one placement with all nodes. If members run already, only
        their domain is returned. Upstream leaves the order unspecified.
        """
        if terms is None or not terms.topology_key:
            return (Placement(),), SUCCESS
        column = self._snapshot.label_column(terms.topology_key)
        required, problem = self._required(key, column)
        if problem:
            return (), error(problem)
        ids = column.ids
        found = [int(each) for each in np.unique(ids) if each != ABSENT]
        if required is not None:
            found = [each for each in found if column.values[each] == required]
        found.sort(key=lambda each: column.values[each].encode())
        views = (self._snapshot.rows(np.flatnonzero(ids == each)) for each in found)
        return [
            Placement(column.values[each], view) for each, view in zip(found, views, strict=True)
        ], SUCCESS

    def _required(self, key: GroupKey, column: LabelColumn) -> tuple[str | None, str]:
        """Return the domain of the members that have a node (None for none), and a fault or ""."""
        members = self._snapshot.groups.members(key)
        required: str | None = None
        for uid in sorted(members.placed_uids(), key=lambda uid: members.pods[uid].name):
            node_name = self._snapshot.table.node_of_pod(uid)
            row = None if node_name is None else self._snapshot.row_of(node_name)
            value = ABSENT if row is None else int(column.ids[row])
            if value == ABSENT:
                name = members.pods[uid].full_name
                return None, (
                    "cannot determine domain for already scheduled pods: no topology domain found "
                    f"for pod {name}"
                )
            domain = column.values[value]
            if required is not None and domain != required:
                return None, (
                    "cannot determine domain for already scheduled pods: more than 1 domain found "
                    f"for pod group: {required}, {domain}"
                )
            required = domain
        return required, ""
