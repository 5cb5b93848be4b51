"""The fates of the pods of a world: which were bound, and which were evicted for which."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Final

from moorage.api.resources import EVENTS, PODS
from moorage_lab.fault_sim.company.excuses import is_binding
from moorage_lab.fault_sim.company.plan import preempted
from moorage_lab.fault_sim.company.play import CompanyRun
from moorage_lab.fault_sim.company.world import WAVE_LABEL, Wave

_ARRIVAL_SECONDS: Final = 1.0  # the pods of a wave come within it; what comes later was made again


def preemptors_by_victim(run: CompanyRun) -> dict[str, str]:
    """Return the uid of the pod for which each pod was evicted, as the Events say."""
    log = run.store.shelf(EVENTS.plural).log
    preemptors: dict[str, str] = {}
    for change in log.since(0, len(log)) or ():
        event = change.record.decode()
        if event.get("reason") == "Preempted" and event.get("related"):
            victim = event.get("regarding") or event.get("involvedObject") or {}
            preemptors.setdefault(victim.get("uid", ""), event["related"].get("uid", ""))
    return preemptors


def apps_by_uid(run: CompanyRun) -> dict[str, str]:
    """Return the group or the workload of each pod, by uid."""
    return {meta["uid"]: meta.get("labels", {}).get("app", "") for meta in pod_metas(run)}


def pod_metas(run: CompanyRun) -> Iterator[dict[str, Any]]:
    """Yield the metadata of every version of every pod."""
    log = run.store.shelf(PODS.qualified).log
    return (change.record.decode()["metadata"] for change in log.since(0, len(log)) or ())


def bindings(run: CompanyRun, *, after: int = 0, until: float = math.inf) -> dict[str, int]:
    """Return the versions of the bindings between two versions, by uid of the pod."""
    log = run.store.shelf(PODS.qualified).log
    return {
        change.record.decode()["metadata"]["uid"]: change.version
        for change in log.since(after, len(log)) or ()
        if change.version <= until and is_binding(change)
    }


def arrivals(run: CompanyRun, wave: Wave) -> dict[str, int]:
    """Return the version at which the last pod of each group or workload of a wave could be tried.

    A pod with claims of a template waits until these have been made.
    """
    log = run.store.shelf(PODS.qualified).log
    versions: dict[str, int] = {}
    there: set[str] = set()
    last = run.version_at(wave.at + _ARRIVAL_SECONDS)
    for change in log.since(run.version_at(wave.at), len(log)) or ():
        pod = change.record.decode()
        uid, labels = pod["metadata"]["uid"], pod["metadata"].get("labels", {})
        if change.version > last:
            break
        if labels.get(WAVE_LABEL) == str(wave.number) and uid not in there and _has_claims(pod):
            there.add(uid)
            versions[labels.get("app", "")] = change.version
    return versions


def _has_claims(pod: dict[str, Any]) -> bool:
    """Whether each claim of a pod has been made."""
    claims = pod["spec"].get("resourceClaims") or ()
    return len(pod["status"].get("resourceClaimStatuses") or ()) >= len(claims)


def evicted_uids(run: CompanyRun) -> dict[str, int]:
    """Return the version at which a scheduler said that it evicts each pod, by uid."""
    log = run.store.shelf(PODS.qualified).log
    versions: dict[str, int] = {}
    for change in log.since(0, len(log)) or ():
        pod = change.record.decode()
        if preempted(pod):
            versions.setdefault(pod["metadata"]["uid"], change.version)
    return versions
