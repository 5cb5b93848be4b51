"""Moves waiting pods without an event: when backoff ends, and when a pod waited too long.

Three tasks of the scheduler, next to `pump`. The queue says which pods move, the ledger of
evictions which groups need not wait for victims any longer, and `backfill` which groups have waited
for long.
"""

from __future__ import annotations

from moorage.api.pod import Pod
from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.service.core import Core
from moorage.service.pump import Pump
from moorage.snapshot.pod_groups import GroupKey
from moorage.state.lifecycle import PodState
from moorage.state.queue import SchedulingQueue

_GROUPS_FLUSH_SECONDS = 1.0
_LEFTOVER_FLUSH_SECONDS = 30.0  # kubernetes v1.36 pkg/scheduler/backend/queue


async def flush_backoff(queue: SchedulingQueue, clock: Clock) -> None:
    """Release pods whose backoff is over, every second, until cancelled.

    Where backoff ends with a whole second of wall time, each look comes at a whole second. A look
    in between would only be late.
    """
    whole_seconds = queue.settings.pop_from_backoff
    while True:
        rest_ns = NS_PER_SECOND
        if whole_seconds:
            rest_ns -= clock.now_ns() % NS_PER_SECOND
        await aio.sleep(rest_ns / NS_PER_SECOND)
        queue.flush_backoff()


async def flush_leftover(queue: SchedulingQueue) -> None:
    """Retry pods that waited too long for an event, until cancelled."""
    while True:
        queue.flush_unschedulable_leftover()
        await aio.sleep(_LEFTOVER_FLUSH_SECONDS)


async def flush_groups(core: Core, pump: Pump) -> None:
    """Try groups again that wait without an event, every second, until cancelled."""
    while True:
        await aio.sleep(_GROUPS_FLUSH_SECONDS)
        look_at_groups(core, pump)


def groups_need_look(core: Core, pump: Pump) -> bool:
    """Whether `look_at_groups` may have something to do in a second."""
    backfill = pump.backfill
    return core.evictions.groups_wait or (backfill is not None and backfill.needs_look)


def look_at_groups(core: Core, pump: Pump) -> None:
    """Try groups again that need not wait any longer: for victims, or for room to be held."""
    if pump.backfill is not None:
        pump.backfill.look()
    release_groups(core)


def release_groups(core: Core, *, new_domain: bool = False) -> None:
    """Try the groups that need not wait for victims any longer; the first of them comes first.

    Also at once where what a group decided does not hold any longer: a node of its places is gone
    or closed, or an empty domain has come over which its members must be spread. Other pods would
    still spare its room, and evict elsewhere.

    Parameters
    ----------
    core
        The scheduler.
    new_domain
        Whether a node has come, or has new labels.
    """
    if not core.evictions.groups_wait:
        return
    snapshot = core.snapshot

    def is_open(name: str) -> bool:
        row = snapshot.row_of(name)
        return row is not None and not snapshot.unschedulable[row]

    def holds(group: GroupKey, places: tuple[str, ...]) -> bool:
        spreads = new_domain and any(
            map(_must_spread, snapshot.groups.members(group).waiting_pods())
        )
        return not spreads and all(map(is_open, places))

    state = core.queue.lifecycle.state
    for group, woken in core.evictions.release_groups(holds).items():
        waiting = snapshot.groups.members(group).waiting_pods()
        if woken:  # the others were tried since the victims left, and wait for something else
            waiting = [pod for pod in waiting if state(pod.uid) is PodState.GATED]
        core.queue.activate(waiting)


def _must_spread(pod: Pod) -> bool:
    constraints = pod.spec.topology_spread_constraints or ()
    return any(each.when_unsatisfiable == "DoNotSchedule" for each in constraints)
