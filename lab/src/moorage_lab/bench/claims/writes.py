"""The writes of a scheduler about the claims of decided pods, without an API server.

Part of `engine_run`. Reserve runs as in a scheduler. The answer of the API server and its watch
event arrive at once.
"""

from __future__ import annotations

import msgspec

from moorage.api.devices import ResourceClaim
from moorage.api.pod import Pod
from moorage.base.errors import UsageError
from moorage.engine.decision import Decision
from moorage.framework.profile import Profile
from moorage.framework.runner import run_reserve
from moorage.snapshot.snapshot import Snapshot


class ClaimWrites:
    """The claims of the pods of one run.

    Parameters
    ----------
    snapshot
        The cluster, with its claims.
    profile
        The profile that decides.
    """

    def __init__(self, snapshot: Snapshot, profile: Profile) -> None:
        self._table = snapshot.claims
        self._lister = snapshot.listers.resource_claims
        self._profile = profile
        self._by_pod: dict[str, list[ResourceClaim]] = {}
        self._count = 0

    def reserve_devices(self, decision: Decision) -> None:
        """Run Reserve for a decided pod.

        Raises
        ------
        UsageError
            The devices are not there.
        """
        pod = decision.pod
        status = run_reserve(self._profile, decision.state, pod, decision.node_name)
        if not status.ok:
            raise UsageError(f"the workload does not fit: {pod.key}: {status.message}")

    def show_allocations(self, pod: Pod) -> None:
        """Show the allocations of a pod that was reserved last as written."""
        for uid in list(self._table.under_way_uids()):
            under_way = self._table.find_under_way(uid)
            assert under_way is not None, "its uid was just listed"
            self._count += 1
            claim, number = under_way.claim, f"{self._count}"
            metadata = claim.metadata
            if metadata.generate_name:  # the special claim, which the scheduler creates
                name = f"{metadata.generate_name}{number}"
                metadata = msgspec.structs.replace(metadata, name=name, uid=name)
            metadata = msgspec.structs.replace(metadata, resource_version=number)
            written = msgspec.structs.replace(claim, metadata=metadata)
            self._lister.put(written)
            self._table.end_allocation(uid)
            self._by_pod.setdefault(pod.metadata.uid, []).append(written)

    def free_devices(self, pod: Pod) -> None:
        """Remove the claims of a pod that is gone."""
        for claim in self._by_pod.pop(pod.metadata.uid, ()):
            self._lister.remove(claim)
