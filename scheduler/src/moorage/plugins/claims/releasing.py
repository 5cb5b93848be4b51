"""Deallocates devices that a pod cannot use, and undoes the writes of a failed attempt.

The writes run in the background. The watch shows their changes, and hints queue the pods that may
benefit.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/dynamicresources`` (PostFilter,
Unreserve), which does the same while the attempt waits.
"""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from moorage.api.devices import ResourceClaim
from moorage.base.errors import MoorageError, NotFoundError
from moorage.framework.effects import PluginEffects
from moorage.framework.handle import BindingClient
from moorage.plugins.claims.attempt import Attempt
from moorage.plugins.claims.pod_claims import full_name
from moorage.plugins.claims.writing import ClaimWriter
from moorage.snapshot.claim_table import ClaimTable
from moorage.snapshot.pod_info import PodInfo

# kube-scheduler retries the pod after its backoff; this is the default maximum.
_TRY_AGAIN_SECONDS: Final = 10.0
_LOOK_SECONDS: Final = 0.1


class Releases:
    """Releases claims in the background.

    Parameters
    ----------
    writer, client
        The API writes, and the wait after a failed write.
    table
        The claims as the scheduler believes them.
    effects
        Runs the writes.
    """

    def __init__(
        self, writer: ClaimWriter, client: BindingClient, table: ClaimTable, effects: PluginEffects
    ) -> None:
        self._writer = writer
        self._client = client
        self._table = table
        self._effects = effects
        # The uids of claims and pods whose reservations are being removed.
        self._unreserving: set[tuple[str, str]] = set()

    def deallocate(self, claim: ResourceClaim, pod: PodInfo) -> None:
        """Deallocate a claim that prevents a pod from being scheduled."""
        self._effects.in_background(
            f"deallocation of ResourceClaim {full_name(claim)}",
            lambda: self._or_try_again(self._writer.deallocate(claim), pod),
        )

    def delete_claim(self, claim: ResourceClaim, pod: PodInfo) -> None:
        """Delete the special claim of a pod that an earlier attempt left behind."""
        self._effects.in_background(
            f"deletion of ResourceClaim {full_name(claim)}",
            lambda: self._or_try_again(self._writer.delete_claim(claim), pod),
        )

    def unreserve(self, claim: ResourceClaim, pod: PodInfo) -> None:
        """Remove a pod from a claim's reservedFor."""
        self._effects.in_background(
            f"reservation of ResourceClaim {full_name(claim)} for pod {pod.key}",
            lambda: self._unreserve(claim, pod),
        )

    async def _unreserve(self, claim: ResourceClaim, pod: PodInfo) -> None:
        """Remove the reservation, and believe the answer: the pod may be tried before the watch."""
        both = claim.metadata.uid, pod.uid
        if both in self._unreserving:
            return  # a second removal could take the reservation of a later attempt
        self._unreserving.add(both)
        try:
            self._table.assume(await self._writer.unreserve(claim, pod.uid))
        finally:
            self._unreserving.discard(both)

    async def unreserved(self, attempt: Attempt, pod: PodInfo) -> None:
        """Wait until no earlier reservation of a pod is being removed; take the claims of then."""
        for each in attempt.claims:
            both = each.claim.metadata.uid, pod.uid
            if both not in self._unreserving:
                continue
            while both in self._unreserving:
                await self._client.sleep(_LOOK_SECONDS)
            each.claim = self._table.get(each.claim.namespace, each.claim.name) or each.claim

    async def _or_try_again(self, write: Awaitable[None], pod: PodInfo) -> None:
        """Await a write; after a failure, no event will queue the pod, so activate it later."""
        try:
            await write
        except NotFoundError:
            return
        except MoorageError:
            await self._client.sleep(_TRY_AGAIN_SECONDS)
            self._effects.activate([pod.pod])
            raise
