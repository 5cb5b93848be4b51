"""PreBind: writes the allocations of Reserve to the API, and waits until devices are ready.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/dynamicresources`` (PreBind).
"""

from __future__ import annotations

from typing import Final

from moorage.api.devices import ResourceClaim
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.framework.effects import PluginEffects
from moorage.framework.handle import BindingClient
from moorage.plugins.claims.attempt import Attempt, PodClaim
from moorage.plugins.claims.conditions import (
    TIMED_OUT,
    are_ready,
    is_overdue,
    waits_for_devices,
)
from moorage.plugins.claims.counts import ClaimCounts
from moorage.plugins.claims.extended import NodeClaim, is_in_memory
from moorage.plugins.claims.pod_claims import ClaimError, full_name, is_reserved_for
from moorage.plugins.claims.writing import ClaimWriter
from moorage.snapshot.claim_table import ClaimTable
from moorage.snapshot.pod_info import PodInfo

_POLL_SECONDS: Final = 5.0
# Timeout until the watch shows a created claim, and the interval between two checks
# (kubernetes v1.36 ``extendeddynamicresources.go``: 120 s; there once a second).
_SHOWN_SECONDS_MAX: Final = 120.0
_LOOK_SECONDS: Final = 0.01
_LOOK_SECONDS_MAX: Final = 1.0


class ClaimBinder:
    """Publishes allocations and waits for devices.

    Parameters
    ----------
    table
        The claims.
    writer, client
        The API writes, and the wait between two checks.
    effects
        Emits Events about the devices a pod waits for.
    counts
        Counters for claims and waits.
    clock, timeout_ns
        Time limit for devices to become ready; None to never wait for devices.
    """

    def __init__(
        self,
        table: ClaimTable,
        writer: ClaimWriter,
        client: BindingClient,
        *,
        effects: PluginEffects,
        counts: ClaimCounts,
        clock: Clock,
        timeout_ns: int | None,
    ) -> None:
        self._table = table
        self._writer = writer
        self._client = client
        self._effects = effects
        self._counts = counts
        self._clock = clock
        self._timeout_ns = timeout_ns

    async def bind(self, attempt: Attempt, pod: PodInfo, node_name: str) -> None:
        """Write every claim's allocation and reservation, and wait until the devices are ready.

        Raises
        ------
        ClaimError
            A write or wait failed or took too long; earlier writes remain.
        """
        special = attempt.special_on(node_name)
        for each in attempt.claims:
            if not is_reserved_for(pod.pod, each.claim) and not _is_unneeded(each, special):
                await self._publish(each, pod, special if each.special else None)
        timeout_ns = self._timeout_ns
        if timeout_ns is not None and any(waits_for_devices(each.claim) for each in attempt.claims):
            await self._wait(attempt, pod, node_name, timeout_ns=timeout_ns)
        for each in attempt.claims:
            if each.allocation is not None:
                self._table.end_allocation(each.uid)

    async def _publish(self, one: PodClaim, pod: PodInfo, special: NodeClaim | None) -> None:
        if special is not None and is_in_memory(one.claim):
            try:
                one.claim = await self._writer.create_claim(special)
            except ClaimError:
                self._counts.creates["failure",] += 1
                raise
            self._counts.creates["success",] += 1
            self._table.is_called(one.uid, one.claim)
        one.claim = await self._writer.reserve(one.claim, one.allocation, pod)
        if special is None:
            self._table.assume(one.claim)
            return
        await self._shown(one.claim)
        await self._writer.tell_pod(pod, one.claim, special)

    async def _shown(self, claim: ResourceClaim) -> None:
        """Wait until the watch shows a claim; otherwise its devices could be allocated again."""
        waited, wait = 0.0, _LOOK_SECONDS
        while not self._table.assume(claim) and waited < _SHOWN_SECONDS_MAX:
            await self._client.sleep(wait)
            waited, wait = waited + wait, min(2 * wait, _LOOK_SECONDS_MAX)

    async def _wait(
        self, attempt: Attempt, pod: PodInfo, node_name: str, *, timeout_ns: int
    ) -> None:
        self._effects.emit(
            pod.pod,
            kind="Normal",
            reason="BindingConditionsPending",
            action="Scheduling",
            note=f"waiting for binding conditions for device on node {node_name}",
        )
        began_ns, problem = self._clock.monotonic_ns(), None
        try:
            await self._ready(attempt, timeout_ns)
        except ClaimError as found:
            problem = found
        seconds = (self._clock.monotonic_ns() - began_ns) / NS_PER_SECOND
        self._counts.waited(attempt, problem, seconds=seconds)
        if problem is not None:
            raise problem

    async def _ready(self, attempt: Attempt, timeout_ns: int) -> None:
        deadline_ns = self._clock.monotonic_ns() + timeout_ns
        while not self._are_ready(attempt, timeout_ns):
            left_seconds = (deadline_ns - self._clock.monotonic_ns()) / NS_PER_SECOND
            if left_seconds <= 0:
                raise ClaimError(f"{TIMED_OUT}: context deadline exceeded")
            await self._client.sleep(min(_POLL_SECONDS, left_seconds))

    def _are_ready(self, attempt: Attempt, timeout_ns: int) -> bool:
        """Check the current version of every claim; return True when all devices are ready."""
        for each in attempt.claims:
            if is_in_memory(each.claim):
                continue
            now = self._table.get(each.claim.namespace, each.claim.name)
            if now is None:
                raise ClaimError(f'could not find ResourceClaim "{full_name(each.claim)}"')
            each.claim = now
            if are_ready(now):
                continue
            if is_overdue(now, self._clock, timeout_ns=timeout_ns):
                raise ClaimError(f"{TIMED_OUT}: claim={now.name}")
            return False
        return True


def _is_unneeded(one: PodClaim, special: NodeClaim | None) -> bool:
    """Whether the special claim is not needed: device plugins of the node provide everything."""
    if not one.special or not is_in_memory(one.claim):
        return False
    return special is None or not special.claim.spec.devices.requests
