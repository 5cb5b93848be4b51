"""The rules about totals: what a world costs in all, which no rule about one decision can judge."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Any

import msgspec

from moorage.api.resources import LEASES, PODS
from moorage_lab.fault_sim.company.cluster import WriteCall
from moorage_lab.fault_sim.company.excuses import (
    device_releases,
    follows_change,
    lost_members,
    lost_place,
    met_error,
    node_changes,
    node_deletions,
    permit_releases,
)
from moorage_lab.fault_sim.company.outcomes import (
    apps_by_uid,
    arrivals,
    bindings,
    evicted_uids,
    pod_metas,
    preemptors_by_victim,
)
from moorage_lab.fault_sim.company.plan import (
    Plan,
    final_objects,
    fresh_scheduler,
    later_evictions,
    plan_of,
)
from moorage_lab.fault_sim.company.play import QUIET_SECONDS, CompanyRun
from moorage_lab.fault_sim.company.world import WAVE_LABEL, Wave
from moorage_lab.fault_sim.history import is_finished, name_of, node_of, nominated_of
from moorage_sandbox.storage.record import Record

_POD = re.compile(r"/api/v1/namespaces/[^/]+/pods/[^/]+")
_GONE = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT})
# A recomputation draws among equal nodes: the plan is the largest of so many.
_PLANS = 3
# Backoff of a rejected pod lasts up to 10 s, and its start and the last binding take a moment.
_SETTLING_SECONDS = 15.0
_FRESH_SECONDS = 30.0
_LOST_PLACES = frozenset({"node-goes", "cordon"})


COLLECTING_SECONDS = 60.0
"""The controllers remove the pods of a node that is gone 40 s later, at a look each 20 s."""


class Total(msgspec.Struct, frozen=True, kw_only=True):
    """A total of a world, and what the rules allow.

    Parameters
    ----------
    rule
        Name of the rule.
    amount, allowed
        The total, and what is allowed.
    text
        What was counted.
    """

    rule: str
    amount: float
    allowed: float
    text: str

    @property
    def excess(self) -> float:
        """How much more it is than what is allowed; 0 or less for none."""
        return self.amount - self.allowed


def _evictions(run: CompanyRun) -> Iterator[Total]:
    """Compare the evictions after each wave with those of the plain plan."""
    for wave, until in _spans(run):
        evicted = _evicted(run, wave, until)
        if not evicted:
            continue
        plan = _largest_plan(run, wave, in_turn=False)
        if len(evicted) > plan.evictions:
            in_turn = _largest_plan(run, wave, in_turn=True)
            plan = max(plan, in_turn, key=lambda each: each.evictions)
        planned = plan.evictions
        changes = node_changes(run, wave, until) if len(evicted) > planned else []
        if len(evicted) > planned:
            planned += _evictions_for_others(run, plan, evicted, changes)
        if len(evicted) > planned:
            backoffs = _Backoffs(run)
            evicted = [uid for uid in evicted if not backoffs.excuse_binding(uid, changes, wave)]
            planned = _with_later_plans(run, planned, evicted, changes)
        yield Total(
            rule="evictions",
            amount=len(evicted),
            allowed=planned,
            text=f"wave {wave.number} evicts {len(evicted)} pods, the plain plan {planned}",
        )


def _largest_plan(run: CompanyRun, wave: Wave, *, in_turn: bool) -> Plan:
    plans = [plan_of(run, wave, seed=seed, in_turn=in_turn) for seed in range(_PLANS)]
    return max(plans, key=lambda plan: plan.evictions)


def _evictions_for_others(
    run: CompanyRun, plan: Plan, evicted: list[str], changes: list[int]
) -> int:
    """Return what plans of their own evict for the pods that run, though the plan found no place.

    Which of several equal victims goes decides whether a device is free for the next pod: a dry run
    frees no device. So the world may place more pods than the plan. A node may come, and of groups
    that do not all fit the world may place others than the plan. Each group and each workload is
    planned once, at its first eviction, so evicting without end exceeds its plan. A pod whose place
    is lost to a later change of a node need not run.
    """
    preemptors, versions, ran = preemptors_by_victim(run), evicted_uids(run), bindings(run).keys()
    last_change = max(changes, default=0)
    others = [
        uid
        for uid in evicted
        if preemptors.get(uid) in plan.waiting
        and (preemptors[uid] in ran or versions[uid] < last_change)
    ]
    apps, first = apps_by_uid(run), dict[str, int]()
    for uid in others:
        app = apps[preemptors[uid]]
        first[app] = min(versions[uid], first.get(app, versions[uid]))
    return sum(later_evictions(run, version - 1, app=app) for app, version in first.items())


class _Backoffs:
    """The backoffs of the preemptors of a run, in which pods of lower priority take their room.

    Room that a group gave up at Permit is such room, too. The logs are read once.
    """

    def __init__(self, run: CompanyRun) -> None:
        self._run = run
        self._apps, self._preemptors = apps_by_uid(run), preemptors_by_victim(run)
        self._bound = bindings(run)
        self._releases: dict[str, list[int]] = {}
        self._arrivals: dict[int, dict[str, int]] = {}

    def excuse_binding(self, uid: str, changes: list[int], wave: Wave) -> bool:
        """Return whether nobody could know of its preemptor when a pod was bound."""
        return self._saw_binding(uid, changes) or self._came_later(uid, wave)

    def _came_later(self, uid: str, wave: Wave) -> bool:
        """Return whether a pod was bound while the pods of its preemptor's group still came."""
        app = self._apps.get(self._preemptors.get(uid, ""), "")
        if wave.number not in self._arrivals:
            self._arrivals[wave.number] = arrivals(self._run, wave)
        last = self._arrivals[wave.number].get(app, 0)
        return self._run.version_at(wave.at) < self._bound.get(uid, 0) <= last

    def _saw_binding(self, uid: str, changes: list[int]) -> bool:
        """Return whether a pod was bound in one of its preemptor, after one of these changes."""
        app = self._apps.get(self._preemptors.get(uid, ""), "")
        if app not in self._releases:
            self._releases[app] = permit_releases(self._run, app)
        reasons = changes + self._releases[app]
        return follows_change(self._run, self._bound.get(uid, 0), reasons)


def _with_later_plans(run: CompanyRun, planned: int, evicted: list[str], changes: list[int]) -> int:
    """Return the evictions that are allowed where nodes come, go or are cordoned.

    The pods that wait are planned anew at each change. What the plan before it allows counts as far
    as it was carried out by then.
    """
    versions = evicted_uids(run)
    allowed = planned
    for version in changes:
        done = sum(versions[uid] <= version for uid in evicted)
        allowed = max(allowed, min(done, allowed) + later_evictions(run, version))
    return allowed


def _spans(run: CompanyRun) -> Iterator[tuple[Wave, float]]:
    """Yield each wave and the moment at which the next one comes."""
    waves = run.world.waves
    for number, wave in enumerate(waves, start=1):
        yield wave, waves[number].at if number < len(waves) else run.seconds


def _evicted(run: CompanyRun, wave: Wave, until: float) -> list[str]:
    """Return the uids of the pods that were evicted for a wave, until a moment.

    Pods of the middle level that were evicted come again, and evict for themselves.
    """
    first, last = run.version_at(wave.at), run.version_at(until)
    preemptors, others = preemptors_by_victim(run), _uids_of_others(run)
    return [
        uid
        for uid, version in evicted_uids(run).items()
        if first < version <= last and preemptors.get(uid) not in others
    ]


def _uids_of_others(run: CompanyRun) -> set[str]:
    """Return the uids of the pods that came with no wave."""
    return {meta["uid"] for meta in pod_metas(run) if WAVE_LABEL not in meta.get("labels", {})}


def _deletes_pod(write: WriteCall) -> bool:
    by_scheduler = write.program == "scheduler" and write.method == "DELETE"
    return by_scheduler and _POD.fullmatch(write.path) is not None


def _bound_in_vain(run: CompanyRun) -> Iterator[Total]:
    """Look for pods that the scheduler bound after a wave came, and evicted before the next.

    A pod that is bound before a node comes or goes, and evicted after that, is not bound in vain:
    the preemptor had another place, or none. Nor is one that is bound right after the change. The
    same holds for a device that gets free, if the preemptor needs one. The pods of a wave come one
    after another: nobody is bound in vain before the whole group of the preemptor is there.
    """
    versions, preemptors = evicted_uids(run), preemptors_by_victim(run)
    backoffs = _Backoffs(run)
    for wave, until in _spans(run):
        bound = bindings(run, after=run.wave_versions[wave.number], until=run.version_at(until))
        changes = node_changes(run, wave, until)
        count = 0
        for uid in bound.keys() & set(_evicted(run, wave, until)):
            reasons = changes + device_releases(run, preemptors.get(uid, ""))
            changed = any(bound[uid] < version < versions[uid] for version in reasons)
            count += not changed and not backoffs.excuse_binding(uid, reasons, wave)
        if count:
            text = f"{count} pods are bound after wave {wave.number} came, and evicted"
            yield Total(rule="bound-in-vain", amount=count, allowed=0, text=text)


def _deleted_twice(run: CompanyRun) -> Iterator[Total]:
    """Compare the deletions that the scheduler sent with the pods that it evicted."""
    sent = sum(_deletes_pod(write) for write in run.writes)
    evicted = len(evicted_uids(run))
    gone = sum(_deletes_pod(write) and write.status in _GONE for write in run.writes)
    text = f"{sent} deletions are sent for {evicted} pods, {gone} of them for pods that are gone"
    yield Total(rule="deleted-twice", amount=sent, allowed=evicted, text=text)


def _writes_at_rest(run: CompanyRun) -> Iterator[Total]:
    """Count the writes of the quiet time; heartbeats of nodes and leases do not count."""
    counts: Counter[str] = Counter()
    # Where a pod ended late, those that wait are tried again, once more after their backoff.
    begin = max(run.seconds - QUIET_SECONDS, run.moment_of(_last_end(run)) + _SETTLING_SECONDS)
    for write in run.writes:
        if write.version <= run.quiet_version or write.at <= begin:
            continue
        heartbeat = write.program == "nodes" and "/nodes/" in write.path
        # A controller whose pods a quota refuses tries again, ever more rarely, as upstream.
        refused = write.program == "controllers" and write.status >= HTTPStatus.BAD_REQUEST
        if f"/{LEASES.plural}" not in write.path and not heartbeat and not refused:
            counts[f"{write.program} {write.method} {write.path}"] += 1
    if counts:
        most = ", ".join(f"{count} x {name}" for name, count in counts.most_common(3))
        amount = counts.total()
        text = f"{amount} writes when nothing changes: {most}"
        yield Total(rule="writes-at-rest", amount=amount, allowed=0, text=text)


def _settling(run: CompanyRun) -> Iterator[Total]:
    """Measure how long pods are bound and evicted after the last thing that the world made happen.

    A pod that ends by itself is such a thing: a pod that waits takes its room.
    """
    last = max((act.at for act in run.world.acts), default=0.0)
    last = max(last, run.moment_of(_last_end(run)))
    moments = [
        write.at
        for write in run.writes
        if _deletes_pod(write) or (write.program == "scheduler" and "/binding" in write.path)
    ]
    seconds = max(0.0, max(moments, default=last) - last)
    features = run.world.features
    # Victims have to stop; once more where a nominated node is lost, where victims evict others,
    # and where a pod gets a device only once the victims of another pod have left.
    rounds = 1 + bool(_LOST_PLACES.intersection(features))
    rounds += ("middle-priority" in features) + ("claims" in features)
    # Other pods take the room of members that time out at Permit.
    allowed = rounds * run.world.grace_seconds_most + _SETTLING_SECONDS + run.permit_seconds
    if "node-goes" in features:
        allowed += COLLECTING_SECONDS
    if not run.world.autoscaled_most:
        text = f"pods are bound or evicted until {seconds:.1f} s after the last change of the world"
        yield Total(rule="settling", amount=round(seconds, 1), allowed=allowed, text=text)


def _last_end(run: CompanyRun) -> int:
    """Return the version at which a pod last ended by itself, 0 for none."""
    log = run.store.shelf(PODS.qualified).log
    ends = [
        change.version
        for change in log.since(0, len(log)) or ()
        if _has_succeeded(change.record) and not _has_succeeded(change.previous)
    ]
    return max(ends, default=0)


def _has_succeeded(record: Record | None) -> bool:
    return record is not None and record.decode().get("status", {}).get("phase") == "Succeeded"


def waiting_in_vain(run: CompanyRun) -> Iterator[Total]:
    """Let a scheduler that has just been started decide about the objects at the end."""
    fresh = fresh_scheduler(run, final_objects(run), seed=run.world.seed)
    fresh.settle(within_seconds=_FRESH_SECONDS)
    pods = {pod["metadata"]["uid"]: pod for pod in _pods(run)}
    late = sorted(name_of(pods[uid]) for uid in fresh.bound if uid in pods)
    if fresh.evictions:
        text = f"a scheduler that has just been started evicts {len(fresh.evictions)} pods"
        yield Total(rule="preempts-late", amount=len(fresh.evictions), allowed=0, text=text)
    elif late:
        text = f"pods wait that a scheduler just started places: {', '.join(late[:5])}"
        yield Total(rule="waiting-in-vain", amount=len(late), allowed=0, text=text)


def _half_groups(run: CompanyRun) -> Iterator[Total]:
    """Count the placed members of each group: all that it needs, or none."""
    for group in run.world.groups:
        members = [
            pod for pod in _pods(run) if pod["metadata"].get("labels", {}).get("app") == group.name
        ]
        ended = any(is_finished(pod) for pod in members) or lost_members(run, group.name)
        ended = ended or lost_place(run, group.name)
        there = sum(bool(node_of(pod)) for pod in members)
        if 0 < there < group.least and not ended:
            text = f"group {group.name} has {there} of {group.least} members on nodes"
            yield Total(rule="half-groups", amount=there, allowed=0, text=text)


def _nominated_in_vain(run: CompanyRun) -> Iterator[Total]:
    """Look for preemptors that still wait at the end for room that they made.

    A pod that waits at Permit has its room, and may be nominated to its node.
    """
    names = sorted(
        name_of(pod)
        for pod in _pods(run)
        if nominated_of(pod) and not node_of(pod)
        if pod["metadata"]["uid"] not in run.permit_places
    )
    if names:
        text = f"pods with a nominated node wait at the end: {', '.join(names[:5])}"
        yield Total(rule="nominated-in-vain", amount=len(names), allowed=0, text=text)


def _failures(run: CompanyRun) -> Iterator[Total]:
    for text in run.failures:
        yield Total(rule="failures", amount=1, allowed=0, text=text)


def _broken_attempts(run: CompanyRun) -> Iterator[Total]:
    """Look for pods of which the scheduler ever said that an attempt met an error."""
    log = run.store.shelf(PODS.qualified).log
    pods = (change.record.decode() for change in log.since(0, len(log)) or ())
    gone = node_deletions(run)
    names = {name_of(pod) for pod in pods if met_error(pod, gone)}
    if names:
        text = f"attempts met an error: {', '.join(sorted(names)[:5])}"
        yield Total(rule="broken-attempts", amount=len(names), allowed=0, text=text)


def _pods(run: CompanyRun) -> list[dict[str, Any]]:
    return [record.decode() for record in run.store.shelf(PODS.qualified).records()]


RULES: dict[str, Callable[[CompanyRun], Iterator[Total]]] = {
    "evictions": _evictions,
    "bound-in-vain": _bound_in_vain,
    "deleted-twice": _deleted_twice,
    "writes-at-rest": _writes_at_rest,
    "settling": _settling,
    "waiting-in-vain": waiting_in_vain,
    "half-groups": _half_groups,
    "nominated-in-vain": _nominated_in_vain,
    "failures": _failures,
    "broken-attempts": _broken_attempts,
}
"""The rules, by name; `preempts-late` is told by the rule of pods that wait."""


def totals(run: CompanyRun) -> list[Total]:
    """Return the totals of a world; a storm leaves all but one without sense."""
    if run.storm:
        count = len(evicted_uids(run))
        text = f"{count} pods are evicted within {run.seconds:.0f} s, and the play ended there"
        return [Total(rule="storm", amount=count, allowed=0, text=text)]
    return [total for rule in RULES.values() for total in rule(run)]


def excesses(run: CompanyRun) -> list[Total]:
    """Return every total of a world that is too large."""
    return [total for total in totals(run) if total.excess > 0]
