"""The rules about totals: what a world costs in all, which no rule about one decision can judge."""

from __future__ import annotations

import math
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
    later_plan,
    own_evictions,
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
# The victims of one decision are evicted within this time.
_AT_ONCE = 0.1
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
        allowed = plan.evictions
        if len(evicted) > allowed:
            changes = node_changes(run, wave, until)
            allowance = _Allowance(run, evicted, changes)
            allowed = allowance.of_wave(plan)
            if len(evicted) > allowed:
                backoffs = _Backoffs(run)
                late = [uid for uid in evicted if backoffs.excuse_binding(uid, changes, wave)]
                evicted = allowance.without_late(late)
                allowed = allowance.with_later_plans(allowed, evicted)
        yield Total(
            rule="evictions",
            amount=len(evicted),
            allowed=allowed,
            text=f"wave {wave.number} evicts {len(evicted)} pods, the plain plan {allowed}",
        )


def _largest_plan(run: CompanyRun, wave: Wave, *, in_turn: bool) -> Plan:
    plans = [plan_of(run, wave, seed=seed, in_turn=in_turn) for seed in range(_PLANS)]
    return max(plans, key=lambda plan: plan.evictions)


class _Allowance:
    """The evictions that plans allow after a wave, besides those of its own plan."""

    def __init__(self, run: CompanyRun, evicted: list[str], changes: list[int]) -> None:
        self._run = run
        self._evicted = evicted
        self._changes = changes
        self._preemptors, self._versions = preemptors_by_victim(run), evicted_uids(run)
        self._apps, self._bound = apps_by_uid(run), bindings(run)
        self._groups = {group.name for group in run.world.groups}

    def of_wave(self, plan: Plan) -> int:
        """Return what is allowed by a plan, and by those of pods that run though they wait in it.

        Which of several equal victims goes decides whether a device is free for the next pod: a dry
        run frees no device. So the world may place more pods than the plan. A node may come, and of
        groups that do not all fit the world may place others than the plan. A pod whose place is
        lost to a later change of a node need not run.
        """
        last_change = max(self._changes, default=0)
        others = [
            uid
            for uid in self._evicted
            if self._preemptors.get(uid) in plan.waiting
            and (self._preemptors[uid] in self._bound or self._versions[uid] < last_change)
        ]
        return plan.evictions + self._own_plans(others)

    def with_later_plans(self, allowed: int, evicted: list[str]) -> int:
        """Return the evictions that are allowed where nodes come, go or are cordoned.

        The pods that wait are planned anew at each change. What the plan before it allows counts as
        far as it was carried out by then. The order in which the pods are tried is not that of the
        plan: each may be decided while others still hold room that they give up a moment later.
        Victims of one decision are evicted one after another: a change may come between them.
        """
        begun = {uid: self._first_of_decision(uid) for uid in self._evicted}
        for number, version in enumerate(self._changes, start=1):
            following = self._changes[number] if number < len(self._changes) else math.inf
            done = sum(begun[uid] <= version for uid in evicted)
            then = [uid for uid in self._evicted if version < begun[uid] <= following]
            more = max(later_plan(self._run, version).evictions, self._own_plans(then))
            allowed = max(allowed, min(done, allowed) + more)
        return allowed

    def without_late(self, late: list[str]) -> list[str]:
        """Leave out pods that were bound in the backoff of their preemptor, and what follows.

        Such a pod has taken a place, so its preemptor may need more of others at once, too.
        """
        moment_of, versions = self._run.moment_of, self._versions
        moments = [(self._decided_of(uid), moment_of(versions[uid])) for uid in late]

        def follows(uid: str) -> bool:
            decided, at = self._decided_of(uid), moment_of(versions[uid])
            return any(decided == each and abs(at - then) < _AT_ONCE for each, then in moments)

        return [uid for uid in self._evicted if not follows(uid)]

    def _first_of_decision(self, uid: str) -> int:
        """Return the version of the first eviction that was decided together with one."""
        decided, at = self._decided_of(uid), self._run.moment_of(self._versions[uid])
        return min(
            version
            for other in self._evicted
            if self._decided_of(other) == decided
            and abs(self._run.moment_of(version := self._versions[other]) - at) < _AT_ONCE
        )

    def _decided_of(self, uid: str) -> str:
        """Return what a pod was evicted for: the name of a group, or the uid of a pod."""
        preemptor = self._preemptors.get(uid, "")
        app = self._apps.get(preemptor, "")
        return app if app in self._groups else preemptor

    def _own_plans(self, evicted: list[str]) -> int:
        """Sum up what each group, and each pod of its own, may evict.

        It is planned once, at its first eviction, so evicting without end exceeds the plan.
        """
        apps: dict[str, str] = {}
        first: dict[str, int] = {}
        for uid in evicted:
            decided = self._decided_of(uid)
            apps[decided] = self._apps.get(self._preemptors.get(uid, ""), "")
            first[decided] = min(self._versions[uid], first.get(decided, self._versions[uid]))
        return sum(
            own_evictions(self._run, version - 1, apps[decided])
            for decided, version in first.items()
        )


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
