"""Runs recorded cases of pod groups (mode ``podgroup``): whole group cycles, one after another.

A step is a pod without a group, or all pending members of a group. No pod is evicted, but
nominations stay for later steps. Format: lab/tests/conformance/data, FURTHER-FAMILIES.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from moorage.engine.attempt import Scope
from moorage.engine.decision import Decision, Outcome
from moorage.engine.groups.cycle import GroupCycle
from moorage.engine.groups.decision import GroupDecision, MemberOutcome
from moorage.framework.preemption import PREEMPTION
from moorage.service.groups.group_status import condition_after
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo
from moorage_lab.conformance.recordings import Json
from moorage_lab.conformance.world import World, failed


def run_groups(world: World) -> Json:
    """Schedule the pending pods: group by group, in the order of the first member of each."""
    return {"steps": [_step(world, key, infos) for key, infos in _steps(world)]}


def _steps(world: World) -> Iterable[tuple[GroupKey | None, list[PodInfo]]]:
    groups = world.snapshot.groups
    steps: dict[GroupKey | str, list[PodInfo]] = {}
    for info in world.pending:
        key = groups.key_of(info.pod)
        steps.setdefault(info.uid if key is None else key, []).append(info)
    return [(key if isinstance(key, GroupKey) else None, infos) for key, infos in steps.items()]


def _step(world: World, key: GroupKey | None, infos: Sequence[PodInfo]) -> Json:
    if key is None:
        return _single(world, infos[0])
    rows = {info.uid: world.unscheduled(info) for info in infos}
    tried = sorted((info for info in infos if rows[info.uid] is None), key=lambda i: -i.priority)
    answer: Json = {"podGroup": key.full_name}
    if tried:
        answer |= _group(world, key, tried, rows)
    return answer | {"members": [rows[info.uid] for info in infos]}


def _single(world: World, info: PodInfo) -> Json:
    row = world.unscheduled(info)
    if row is not None:
        return row
    profile = world.profile(info.pod)
    assert profile is not None
    decision = world.cycles[profile.name].decide(info, Scope(post_filter=False))
    if decision.outcome is not Outcome.BIND:
        return failed(decision)
    world.assume(profile, decision)
    return {"pod": info.key, "outcome": "scheduled", "node": decision.node_name}


def _group(
    world: World, key: GroupKey, tried: Sequence[PodInfo], rows: dict[str, Json | None]
) -> Json:
    profile = world.profile(tried[0].pod)
    assert profile is not None
    cycle = GroupCycle(world.cycles[profile.name], explain=True)
    decision = cycle.decide_group(key, tried)
    for outcome in decision.outcomes(tried):
        rows[outcome.pod.uid] = _member(world, outcome)
    evicted = list(_evictions(decision))
    answer: Json = {"preemption": evicted} if evicted else {}
    group = world.snapshot.listers.pod_groups.get(key.name, key.namespace)
    if group is not None:
        before = group.status.conditions
        condition = condition_after(decision, before)
        shown = [each for each in before if each.type == "PodGroupScheduled"]
        last = condition or (shown[0] if shown else None)
        if last is not None:
            answer["condition"] = {
                "type": last.type,
                "status": last.status,
                "reason": last.reason,
                "message": last.message,
            }
    return answer


def _member(world: World, outcome: MemberOutcome) -> Json:
    profile = world.profile(outcome.pod.pod)
    assert profile is not None
    if outcome.decision is not None:
        world.assume(profile, outcome.decision)
        node = outcome.decision.node_name
        return {"pod": outcome.pod.key, "outcome": "scheduled", "node": node}
    row: Json = {
        "pod": outcome.pod.key,
        "outcome": "unschedulable" if outcome.status.rejected else "error",
        "code": outcome.status.code.text,
        "message": outcome.message,
    }
    if outcome.nomination is not None:
        world.nominate(outcome.pod, outcome.nomination.node_name)
        if outcome.nomination.node_name:
            row["nominatedNode"] = outcome.nomination.node_name
    return row


def _evictions(decision: GroupDecision) -> Iterator[Json]:
    for member in decision.members:
        if member.decision.victims:
            yield _eviction(member.decision)
    if decision.victims:
        victims = [pod.full_name for pod in decision.victims]
        yield {"pod": "", "node": "", "victims": victims, "numPDBViolations": 0}


def _eviction(decision: Decision) -> Json:
    report = decision.state.find(PREEMPTION)
    assert report is not None, "the cycle was told to explain"
    assert decision.nomination is not None
    node = decision.nomination.node_name
    (chosen,) = (each for each in report.candidates if each.node_name == node)
    return {
        "pod": decision.pod.key,
        "node": node,
        "victims": [pod.full_name for pod in decision.victims],
        "numPDBViolations": chosen.violations,
    }
