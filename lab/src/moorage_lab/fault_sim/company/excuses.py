"""What excuses a world: nodes that go, close or come while victims stop, and lost members."""

from __future__ import annotations

import math

from moorage.api.resources import NODES, PODS
from moorage_lab.fault_sim.company.play import CompanyRun
from moorage_lab.fault_sim.company.world import WAVE_LABEL, Wave
from moorage_lab.fault_sim.history import name_of, node_of, nominated_of
from moorage_sandbox.storage.watch_log import Change

# A binding that was under way when a node went ends within this time.
_BINDING_SECONDS = 1.0


def room_was_taken(run: CompanyRun, wave: Wave, until: float) -> bool:
    """Return whether a node went or was cordoned while the victims of a wave stopped.

    A node that comes is an empty domain: places chosen before it may break a hard spread.
    """
    log = run.store.shelf(NODES.qualified).log
    since = run.wave_versions[wave.number]
    last = run.version_at(until)
    for change in log.since(since, len(log)) or ():
        if change.version > last:
            return False
        if change.type == "DELETED" or _closes(change):
            return True
        if change.type == "ADDED" and _spreads(run, wave):
            return True
    return False


def _spreads(run: CompanyRun, wave: Wave) -> bool:
    """Return whether pods of a wave have hard spread constraints."""
    log = run.store.shelf(PODS.qualified).log
    pods = (change.record.decode() for change in log.since(0, len(log)) or ())
    return any(
        pod["metadata"].get("labels", {}).get(WAVE_LABEL) == str(wave.number)
        and bool(pod["spec"].get("topologySpreadConstraints"))
        for pod in pods
    )


def _closes(change: Change) -> bool:
    if change.previous is None:
        return False
    now, before = change.record.decode()["spec"], change.previous.decode()["spec"]
    return bool(now.get("unschedulable") and not before.get("unschedulable"))


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
    log = run.store.shelf(NODES.qualified).log
    gone = [
        run.moment_of(change.version)
        for change in log.since(0, len(log)) or ()
        if change.type == "DELETED" and name_of(change.record.decode()) in nodes
    ]
    return any(0 <= bound - at < _BINDING_SECONDS for at in gone)


def is_binding(change: Change) -> bool:
    """Return whether a change of a pod gives it a node."""
    before = change.previous.decode() if change.previous is not None else {"spec": {}}
    return (
        change.type != "DELETED" and bool(node_of(change.record.decode())) and not node_of(before)
    )
