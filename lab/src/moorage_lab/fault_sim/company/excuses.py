"""Excuses of totals: changes of nodes, room and devices given up, lost members, some errors."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from moorage.api.resources import NODES, PODS, RESOURCE_CLAIMS
from moorage_lab.fault_sim.company.play import CompanyRun
from moorage_lab.fault_sim.company.setups import PERMIT
from moorage_lab.fault_sim.company.world import Wave
from moorage_lab.fault_sim.history import is_finished, name_of, node_of, nominated_of
from moorage_sandbox.storage.record import Record
from moorage_sandbox.storage.watch_log import Change

# A binding that was under way when a node went ends within this time.
_BINDING_SECONDS = 1.0
# The first backoff of a pod.
_BACKOFF_SECONDS = 1.0


def node_changes(run: CompanyRun, wave: Wave, until: float) -> list[int]:
    """Return the versions at which a node came, went or was cordoned, from a wave to a moment.

    A nominated pod loses its place with the node. A node that comes is an empty domain, so places
    chosen before it may break a hard spread, or it lets pods preempt that did not fit before. The
    pods of a node that went count in quotas until they have failed or are gone, one by one.
    """
    first, last = run.wave_versions[wave.number], run.version_at(until)
    nodes = run.store.shelf(NODES.qualified).log
    pods = run.store.shelf(PODS.qualified).log
    changes = [
        change.version
        for change in nodes.since(first, len(nodes)) or ()
        if change.type in ("ADDED", "DELETED") or _closes(change)
    ]
    gone = node_deletions(run)
    changes += [
        change.version
        for change in pods.since(first, len(pods)) or ()
        if _ends(change) and change.version > gone.get(node_of(change.record.decode()), last)
    ]
    return sorted(version for version in changes if version <= last)


def node_deletions(run: CompanyRun) -> dict[str, int]:
    """Return the version at which each node went that is gone, by name."""
    log = run.store.shelf(NODES.qualified).log
    return {
        name_of(change.record.decode()): change.version
        for change in log.since(0, len(log)) or ()
        if change.type == "DELETED"
    }


def device_releases(run: CompanyRun, uid: str) -> list[int]:
    """Return the versions at which a claim lost its devices; none for a pod that needs no device.

    A dry run frees no device, as upstream, so a pod that needs one may find victims only once the
    victims of another pod have left.
    """
    pods = run.store.shelf(PODS.qualified).log
    if not any(
        pod["metadata"]["uid"] == uid and pod["spec"].get("resourceClaims")
        for pod in (change.record.decode() for change in pods.since(0, len(pods)) or ())
    ):
        return []
    claims = run.store.shelf(RESOURCE_CLAIMS.qualified).log
    return [
        change.version
        for change in claims.since(0, len(claims)) or ()
        if _has_devices(change.previous)
        and (change.type == "DELETED" or not _has_devices(change.record))
    ]


def permit_releases(run: CompanyRun, app: str) -> list[int]:
    """Return the versions at which members of groups other than one gave up their room at Permit.

    The preemptors that were rejected meanwhile back off, as upstream, so a pod of lower priority
    may take such room, and is evicted by them. A group that gives up its own room has no excuse.
    """
    if PERMIT not in run.world.features:
        return []
    pods = run.store.shelf(PODS.qualified).log
    return [
        change.version
        for change in pods.since(0, len(pods)) or ()
        if _gives_up_node(change) and _app_of(change) != app
    ]


def _gives_up_node(change: Change) -> bool:
    """Return whether a pod is nominated to no node any more, and has none."""
    if change.previous is None:
        return False
    now = change.record.decode()
    return (
        bool(nominated_of(change.previous.decode())) and not nominated_of(now) and not node_of(now)
    )


def _app_of(change: Change) -> str:
    return str(change.record.decode()["metadata"].get("labels", {}).get("app", ""))


def _has_devices(claim: Record | None) -> bool:
    return claim is not None and bool(claim.decode().get("status", {}).get("allocation"))


def follows_change(run: CompanyRun, version: int, changes: list[int]) -> bool:
    """Return whether a version is of the time in which preemptors back off after a node change.

    A lower pod is tried at once then, and may take the room of a preemptor that lost its place.
    """
    at = run.moment_of(version)
    moments = (run.moment_of(each) for each in changes if each < version)
    return any(at - each <= _BACKOFF_SECONDS for each in moments)


def _ends(change: Change) -> bool:
    """Return whether a change of a pod ends or removes it."""
    if change.type == "DELETED" or change.previous is None:
        return change.type == "DELETED"
    return is_finished(change.record.decode()) and not is_finished(change.previous.decode())


def _closes(change: Change) -> bool:
    if change.previous is None:
        return False
    now, before = change.record.decode()["spec"], change.previous.decode()["spec"]
    return bool(now.get("unschedulable") and not before.get("unschedulable"))


def met_error(pod: dict[str, Any], gone: Iterable[str]) -> bool:
    """Return whether a pod says that an attempt met an error.

    As upstream, a pod reports an error, too, whose preparation a preemption calls off, and one
    whose node goes while its volumes are bound.
    """
    absent = [f'node "{name}" not found' for name in gone]

    def is_excused(message: str) -> bool:
        return message.startswith("preempted by ") or any(each in message for each in absent)

    return any(
        each.get("reason") == "SchedulerError" and not is_excused(each.get("message", ""))
        for each in pod.get("status", {}).get("conditions") or ()
    )


def lost_members(run: CompanyRun, name: str) -> bool:
    """Return whether a member of a group is gone that had a node."""
    log = run.store.shelf(PODS.qualified).log
    for change in log.since(0, len(log)) or ():
        pod = change.record.decode()
        mine = pod["metadata"].get("labels", {}).get("app") == name
        if mine and node_of(pod) and change.type == "DELETED":
            return True
    return False


def lost_place(run: CompanyRun, name: str) -> bool:
    """Return whether the node of a member went right before other members were bound.

    A group that has passed Permit is bound pod by pod, and no binding can be taken back.
    """
    nodes: set[str] = set()
    bound = math.inf
    log = run.store.shelf(PODS.qualified).log
    for change in log.since(0, len(log)) or ():
        pod = change.record.decode()
        if pod["metadata"].get("labels", {}).get("app") != name:
            continue
        if is_binding(change):
            bound = min(bound, run.moment_of(change.version))
        elif not node_of(pod) and bound == math.inf:
            nodes.add(nominated_of(pod))
    gone = [run.moment_of(at) for name, at in node_deletions(run).items() if name in nodes]
    return any(0 <= bound - at < _BINDING_SECONDS for at in gone)


def is_binding(change: Change) -> bool:
    """Return whether a change of a pod gives it a node."""
    before = change.previous.decode() if change.previous is not None else {"spec": {}}
    return (
        change.type != "DELETED" and bool(node_of(change.record.decode())) and not node_of(before)
    )
