"""TopologyPlacementGenerator: a group with a topology constraint is placed in one domain.

For the groups of Kubernetes; Coscheduling does the same for its own.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/topologyaware``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from moorage.base.errors import ConfigError
from moorage.config.gate_table import TOPOLOGY_AWARE
from moorage.framework.group import Placement
from moorage.framework.handle import Handle
from moorage.framework.points import EventRegistration
from moorage.framework.status import Status
from moorage.plugins.gangs.topology_domains import TopologyDomains
from moorage.snapshot.pod_groups import GroupKey, GroupTerms

_PERMIT: Final = (
    "profile {} has groupMode permit, which cannot keep a group in one topology domain: use "
    f"groupMode trial, or set feature gate {TOPOLOGY_AWARE} to false"
)


class TopologyPlacementGenerator:
    """PlacementGenerate plugin; takes no arguments.

    Raises
    ------
    ConfigError
        The profile places members one by one, so it cannot keep them in one domain.
    """

    name = "TopologyPlacementGenerator"

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        if handle.group_mode == "permit":
            raise ConfigError([_PERMIT.format(handle.profile_name)], source=self.name)
        self._domains = TopologyDomains(handle.snapshot, lambda key: not key.source)

    def generate_placements(
        self, key: GroupKey, terms: GroupTerms | None
    ) -> tuple[Sequence[Placement], Status]:
        """Return one placement for each value of the label, ordered by value.

        A group without a constraint gets one placement with all nodes. If members run already, only
        their domain is returned. Upstream leaves the order unspecified.
        """
        return self._domains.placements(key, terms)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register nodes that come to a domain, and members that leave one."""
        return self._domains.registrations()
