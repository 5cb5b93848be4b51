"""What is given back of claims: devices a pod cannot use, and what an attempt had written.

Nobody waits for these writes; the watch shows them, and wakes whom they may help.

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
from moorage.plugins.claims.pod_claims import full_name
from moorage.plugins.claims.writing import ClaimWriter
from moorage.snapshot.pod_info import PodInfo

# kube-scheduler has the pod tried again after its backoff, which by default is this at most.
_TRY_AGAIN_SECONDS: Final = 10.0


class Releases:
    """Has claims released in the background.

    Parameters
    ----------
    writer, client
        The writes, and the wait after one that failed.
    effects
        Takes them on.
    """

    def __init__(self, writer: ClaimWriter, client: BindingClient, effects: PluginEffects) -> None:
        self._writer = writer
        self._client = client
        self._effects = effects

    def deallocate(self, claim: ResourceClaim, pod: PodInfo) -> None:
        """Give back the devices of a claim that keeps a pod from being scheduled."""
        self._effects.in_background(
            f"deallocation of ResourceClaim {full_name(claim)}",
            lambda: self._or_try_again(self._writer.deallocate(claim), pod),
        )

    def delete(self, claim: ResourceClaim, pod: PodInfo) -> None:
        """Delete the special claim of a pod that an earlier attempt left behind."""
        self._effects.in_background(
            f"deletion of ResourceClaim {full_name(claim)}",
            lambda: self._or_try_again(self._writer.delete(claim), pod),
        )

    def unreserve(self, claim: ResourceClaim, pod: PodInfo) -> None:
        """Take a pod out of those a claim is reserved for."""
        self._effects.in_background(
            f"reservation of ResourceClaim {full_name(claim)} for pod {pod.key}",
            lambda: self._writer.unreserve(claim, pod.uid),
        )

    async def _or_try_again(self, write: Awaitable[None], pod: PodInfo) -> None:
        """Write; where that fails no event will wake the pod, so it is tried again in a while."""
        try:
            await write
        except NotFoundError:
            return
        except MoorageError:
            await self._client.sleep(_TRY_AGAIN_SECONDS)
            self._effects.activate([pod.pod])
            raise
