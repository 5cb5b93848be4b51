"""Plays a world: lets its acts happen in virtual time, and records what came of it."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec

from moorage.api.codec import encode
from moorage.base.clock import ManualClock
from moorage_lab.fault_sim.acts import Join
from moorage_lab.fault_sim.company.autoscaler import Autoscaler
from moorage_lab.fault_sim.company.cluster import CompanyCluster, WriteCall
from moorage_lab.fault_sim.company.world import AnyWorldAct, CompanyWorld
from moorage_lab.fault_sim.user_calls import call
from moorage_sandbox.storage.store import Store
from moorage_sandbox.testing.virtual_loop import run_virtual

QUIET_SECONDS = 10.0
"""Time at the end in which nothing may be written but heartbeats."""


_PERMIT_SECONDS = 300.0
# kubernetes v1.36 pkg/scheduler/framework/plugins/gangscheduling: members hold their room so long.


class CompanyRun(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a played world.

    Parameters
    ----------
    world
        The world.
    store
        The objects of the server at the end, with all changes.
    writes
        Writes that programs sent.
    wave_versions
        Version of the server right before each wave, by its number.
    quiet_version
        Version of the server when the quiet time began.
    now_ns
        Wall-clock time at the end, nanoseconds since the Unix epoch.
    seconds
        Virtual time at the end.
    failures
        Tasks that failed.
    refusals
        Answers of the server to users whose act it refused.
    permit_seconds
        Time at the end in which members could time out at Permit; 0 where none waited there.
    permit_places
        Nodes of the pods that wait at Permit at the end, by uid. Their room is taken, also where
        a member that waits again has not reported its node.
    permit_claims
        The claims with their future devices, as objects of the API, that pods at Permit hold at
        the end, by uid.
    storm
        Whether the play ended early, by a storm of evictions.
    """

    world: CompanyWorld
    store: Store
    writes: list[WriteCall]
    wave_versions: dict[int, int]
    quiet_version: int
    now_ns: int
    seconds: float
    failures: list[str]
    refusals: list[str]
    permit_seconds: float = 0.0
    permit_places: dict[str, str] = {}
    permit_claims: dict[str, bytes] = {}
    storm: bool = False

    def version_at(self, at: float) -> int:
        """Return the version of the server at a moment."""
        return max((write.version for write in self.writes if write.at <= at), default=0)

    def moment_of(self, version: int) -> float:
        """Return when the server had a version, in virtual time."""
        return min((each.at for each in self.writes if each.version >= version), default=0.0)


def play(world: CompanyWorld) -> CompanyRun:
    """Play a world to its end."""
    clock = ManualClock()
    return run_virtual(_play(world, clock), clock)


async def _play(world: CompanyWorld, clock: ManualClock) -> CompanyRun:
    wave_versions: dict[int, int] = {}
    refusals: list[str] = []
    async with CompanyCluster(world, clock) as cluster:
        store = cluster.server.store
        if world.autoscaled_most:
            scaler = Autoscaler(cluster, most=world.autoscaled_most)
            cluster.start_task(scaler.run(), name="autoscaler")
        for act in world.acts:
            await _wait_until(cluster, act.at)
            if cluster.storm.is_set():
                break
            for wave in world.waves:
                if wave.at <= act.at:
                    wave_versions.setdefault(wave.number, store.version)
            await _carry_out(cluster, act, refusals)
        await _wait_until(cluster, world.end_seconds)
        permit_seconds = _PERMIT_SECONDS if _places_at_permit(cluster) else 0.0
        await _wait_until(cluster, world.end_seconds + permit_seconds)
        quiet_version = store.version
        await _wait_until(cluster, cluster.seconds + QUIET_SECONDS)
        return CompanyRun(
            world=world,
            store=store,
            writes=list(cluster.writes),
            wave_versions=wave_versions,
            quiet_version=quiet_version,
            now_ns=clock.now_ns(),
            seconds=cluster.seconds,
            failures=cluster.failures,
            refusals=refusals,
            permit_seconds=permit_seconds,
            permit_places=_places_at_permit(cluster),
            permit_claims=_claims_at_permit(cluster),
            storm=cluster.storm.is_set(),
        )


def _places_at_permit(cluster: CompanyCluster) -> dict[str, str]:
    """Return the nodes of the pods that wait at Permit, by uid."""
    waiting = cluster.scheduler.core.waiting.undecided_pods()
    return {each.pod.uid: each.node_name for each in waiting}


def _claims_at_permit(cluster: CompanyCluster) -> dict[str, bytes]:
    """Return the claims whose devices are chosen and not written, by uid, as encoded objects."""
    claims = cluster.scheduler.core.snapshot.claims.under_way()
    return {each.metadata.uid: encode(each) for each in claims}


async def _wait_until(cluster: CompanyCluster, at: float) -> None:
    """Let time pass until a moment, or until a storm of evictions."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(max(0.0, at - cluster.seconds)):
            await cluster.storm.wait()


async def _carry_out(cluster: CompanyCluster, act: AnyWorldAct, refusals: list[str]) -> None:
    if isinstance(act, Join):
        await cluster.join(act.node)
    elif refusal := await call(cluster.client, act):
        refusals.append(refusal)
