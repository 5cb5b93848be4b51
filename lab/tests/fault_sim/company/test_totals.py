"""The rules about totals: a world that is right breaks none, and each planted excess breaks one."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from lab.tests.fault_sim.company.storm import gang_before_backlog
from moorage.api.resources import POD_GROUPS, PODS
from moorage.nodeshapes.annotations import RUN_SECONDS
from moorage_lab.fault_sim.acts import Create, Patch
from moorage_lab.fault_sim.company import totals
from moorage_lab.fault_sim.company.cluster import WriteCall
from moorage_lab.fault_sim.company.excuses import met_error
from moorage_lab.fault_sim.company.manifests import template
from moorage_lab.fault_sim.company.outcomes import arrivals, evicted_uids, preemptors_by_victim
from moorage_lab.fault_sim.company.plan import Plan, own_evictions
from moorage_lab.fault_sim.company.play import CompanyRun, play
from moorage_lab.fault_sim.company.setups import PERMIT
from moorage_lab.fault_sim.company.totals import RULES, Total, excesses
from moorage_lab.fault_sim.company.world import WAVE_LABEL, AnyWorldAct, GroupSize
from moorage_lab.fault_sim.history import node_of, nominated_of
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest


@pytest.mark.parametrize(
    ("members", "grace"),
    [
        pytest.param(6, 0, id="a gang of six, victims that stop at once"),
        pytest.param(8, 0, id="a gang of the whole node"),
        pytest.param(6, 10, id="victims that stop slowly"),
    ],
)
def test_a_gang_before_a_backlog_evicts_what_it_needs(members: int, grace: int) -> None:
    run = play(gang_before_backlog(members, grace=grace))
    assert excesses(run) == []
    assert len(evicted_uids(run)) == members


@pytest.fixture(scope="module")
def right() -> CompanyRun:
    return play(gang_before_backlog(6))


def test_the_same_seed_is_the_same_run(right: CompanyRun) -> None:
    assert play(gang_before_backlog(6)).writes == right.writes


def test_more_evictions_than_planned_are_an_excess(
    right: CompanyRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(totals, "plan_of", lambda *_args, **_more: Plan(evictions=4))
    text = "wave 1 evicts 6 pods, the plain plan 4"
    assert excesses(right) == [Total(rule="evictions", amount=6, allowed=4, text=text)]


def test_a_group_that_the_plan_lets_wait_is_planned_once_by_itself(
    right: CompanyRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    preemptors = frozenset(preemptors_by_victim(right).values())
    calls: list[tuple[int, str]] = []

    def own(run: CompanyRun, version: int, app: str) -> int:
        calls.append((version, app))
        return own_evictions(run, version, app)

    plan = Plan(evictions=0, waiting=preemptors)
    monkeypatch.setattr(totals, "plan_of", lambda *_args, **_more: plan)
    monkeypatch.setattr(totals, "own_evictions", own)
    assert excesses(right) == []
    first = min(evicted_uids(right).values())
    assert calls == [(first - 1, "gang")]
    assert own_evictions(right, first - 1, "another") == 0


def test_deletions_sent_again_are_an_excess(right: CompanyRun) -> None:
    again = [write for write in right.writes if write.method == "DELETE"]
    again = [replace(write, status=404) for write in again if write.program == "scheduler"]
    text = "12 deletions are sent for 6 pods, 6 of them for pods that are gone"
    assert excesses(replace(right, writes=[*right.writes, *again])) == [
        Total(rule="deleted-twice", amount=12, allowed=6, text=text)
    ]


def test_writes_when_nothing_changes_are_an_excess(right: CompanyRun) -> None:
    late = WriteCall(
        at=right.seconds - 1,
        version=right.quiet_version + 1,
        program="controllers",
        method="PATCH",
        path="/api/v1/namespaces/default/pods/p",
        status=200,
    )
    text = "1 writes when nothing changes: 1 x controllers PATCH /api/v1/namespaces/default/pods/p"
    assert excesses(replace(right, writes=[*right.writes, late])) == [
        Total(rule="writes-at-rest", amount=1, allowed=0, text=text)
    ]


def test_a_group_that_is_placed_in_part_is_an_excess(right: CompanyRun) -> None:
    world = replace(right.world, groups=(GroupSize(name="gang", least=7),))
    text = "group gang has 6 of 7 members on nodes"
    assert excesses(replace(right, world=world)) == [
        Total(rule="half-groups", amount=6, allowed=0, text=text)
    ]


def bound_before_the_wave(run: CompanyRun) -> CompanyRun:
    """Let the wave count as come before the pods that it evicts were bound."""
    return replace(run, wave_versions={1: 0})


def bound_late(run: CompanyRun) -> CompanyRun:
    """Let a pod be bound long after the last act."""
    late = WriteCall(
        at=run.seconds - 15,
        version=run.quiet_version,
        program="scheduler",
        method="POST",
        path="/api/v1/namespaces/default/pods/p/binding",
        status=201,
    )
    return replace(run, writes=[*run.writes, late])


def judged_without_groups(run: CompanyRun, *, members: int, low: int) -> CompanyRun:
    """Play a group that cannot be placed, and let a scheduler judge that knows no groups.

    The group needs one pod more than there are. A node of eight processors has some low pods.
    """
    world = gang_before_backlog(members + 1, backlog=low - 8)
    played = play(replace(world, acts=world.acts[:-1], groups=()))
    return replace(played, world=replace(played.world, setup="default", seed=run.world.seed))


def waits_for_free_room(run: CompanyRun) -> CompanyRun:
    """Let pods wait next to free room."""
    return judged_without_groups(run, members=3, low=1)


def waits_to_preempt(run: CompanyRun) -> CompanyRun:
    """Let pods wait that could preempt."""
    return judged_without_groups(run, members=3, low=8)


def ends_while_victims_stop(run: CompanyRun) -> CompanyRun:
    """End the world before the victims have stopped."""
    return play(gang_before_backlog(6, grace=300, seed=run.world.seed))


def fails(run: CompanyRun) -> CompanyRun:
    """Let a task fail."""
    return replace(run, failures=["ValueError: x"])


def meets_an_error(run: CompanyRun) -> CompanyRun:
    """Let a pod say that its attempt met an error, long before the end."""
    world = gang_before_backlog(6, seed=run.world.seed)
    error = {"type": "Other", "status": "True", "reason": "SchedulerError"}
    changes = {"status": {"conditions": [error]}}
    act = Patch(at=16.0, kind="Pod", name="m0", changes=changes, subresource="status")
    return play(replace(world, acts=[*world.acts, act]))


def storms(run: CompanyRun) -> CompanyRun:
    """Let the play end early."""
    return replace(run, storm=True)


PLANTED = {
    "bound-in-vain": (bound_before_the_wave, 6),
    "settling": (bound_late, 30),
    "waiting-in-vain": (waits_for_free_room, 3),
    "preempts-late": (waits_to_preempt, 3),
    "nominated-in-vain": (ends_while_victims_stop, 6),
    "failures": (fails, 1),
    "broken-attempts": (meets_an_error, 1),
    "storm": (storms, 6),
}
"""By rule: how a run is changed so that it breaks the rule alone, and by which amount."""
PLANTED_ABOVE = {"evictions", "deleted-twice", "writes-at-rest", "half-groups"}


@pytest.mark.parametrize("rule", PLANTED)
def test_a_planted_excess_is_found(
    rule: str, right: CompanyRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(totals, "plan_of", lambda *_args, **_more: Plan(evictions=6))
    plant, amount = PLANTED[rule]
    found = [(each.rule, round(each.amount)) for each in excesses(plant(right))]
    assert found == [(rule, amount)]


@pytest.mark.parametrize(
    ("message", "broken"),
    [
        ("broken", True),
        ("preempted by DefaultPreemption", False),
        ('binding volumes: failed to get node "n3": node "n3" not found', False),
        ('binding volumes: failed to get node "n1": node "n1" not found', True),
    ],
)
def test_an_error_is_excused_if_a_preemption_or_the_end_of_a_node_explains_it(
    message: str, broken: bool
) -> None:
    error = {"reason": "SchedulerError", "message": message}
    assert met_error({"status": {"conditions": [error]}}, ["n3"]) is broken


def test_pods_that_wait_at_permit_have_their_room(right: CompanyRun) -> None:
    run = waits_for_free_room(right)
    pods = [record.decode() for record in run.store.shelf(PODS.qualified).records()]
    places = {pod["metadata"]["uid"]: "n1" for pod in pods if not node_of(pod)}
    assert list(totals.waiting_in_vain(replace(run, permit_places=places))) == []


def test_pods_that_wait_at_permit_may_be_nominated(right: CompanyRun) -> None:
    run = ends_while_victims_stop(right)
    pods = [record.decode() for record in run.store.shelf(PODS.qualified).records()]
    places = {pod["metadata"]["uid"]: "n1" for pod in pods if nominated_of(pod)}
    assert {each.rule for each in excesses(run)} == {"nominated-in-vain"}
    assert excesses(replace(run, permit_places=places)) == []


def test_a_pod_may_be_bound_once_members_have_timed_out_at_permit(right: CompanyRun) -> None:
    assert excesses(replace(bound_late(right), permit_seconds=300.0)) == []


def test_a_run_shows_the_members_that_wait_at_permit_at_the_end() -> None:
    """Two of three members have room. They time out together, and wait again."""
    labels = {"app": "gang", WAVE_LABEL: "1"}
    group = {
        "apiVersion": POD_GROUPS.api_version,
        "kind": "PodGroup",
        "metadata": {"name": "gang", "namespace": "default"},
        "spec": {"schedulingPolicy": {"gang": {"minCount": 3}}},
    }
    member: dict[str, Any] = {"schedulingGroup": {"podGroupName": "gang"}}
    acts: list[AnyWorldAct] = [Create(at=1.0, object=group)]
    acts += [
        Create(at=1.0, object=pod_manifest(f"m{number}", cpu="2", labels=labels, **member))
        for number in range(3)
    ]
    world = gang_before_backlog(3)
    world = replace(world, nodes=[node_manifest("n1", cpu="4")], acts=acts, setup=PERMIT)
    run = play(world)
    assert (run.permit_seconds, list(run.permit_places.values())) == (300.0, ["n1", "n1"])


def test_every_rule_has_a_planted_excess() -> None:
    assert {*RULES, "preempts-late", "storm"} == PLANTED.keys() | PLANTED_ABOVE


def test_a_pod_that_waits_for_one_that_ends_by_itself_settles_late() -> None:
    """One pod runs for 60 s, another one waits for its room."""
    ends = template("1", restartPolicy="Never")
    ends["metadata"]["annotations"][RUN_SECONDS] = "60"
    acts: list[AnyWorldAct] = [
        Create(at=1.0, object={"apiVersion": "v1", "kind": "Pod", **named(ends, "first")}),
        Create(at=2.0, object={"apiVersion": "v1", "kind": "Pod", **named(ends, "second")}),
    ]
    world = replace(
        gang_before_backlog(1),
        nodes=[node_manifest("n1", cpu="1")],
        acts=acts,
        waves=(),
        groups=(),
        end_seconds=130.0,
    )
    assert excesses(play(world)) == []


def named(pod: Manifest, name: str) -> Manifest:
    metadata = {**pod["metadata"], "name": name, "namespace": "default"}
    return {**pod, "metadata": metadata}


def test_a_pod_that_is_bound_while_a_group_still_comes_is_not_bound_in_vain(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = gang_before_backlog(2)
    _, _, *group, last = world.acts
    low = Create(at=last.at + 0.2, object=pod_manifest("low", cpu="7"))
    acts = [world.acts[0], *group, low, replace(last, at=last.at + 0.5)]
    run = play(replace(world, acts=acts))
    assert excesses(run) == []
    monkeypatch.setattr(totals, "arrivals", lambda *_run: {})
    assert {each.rule for each in excesses(run)} == {"bound-in-vain", "evictions"}


def test_a_pod_has_come_once_its_claims_have_been_made() -> None:
    world = gang_before_backlog(1)
    *others, last = world.acts
    assert isinstance(last, Create)
    claims = [{"name": "one", "resourceClaimTemplateName": "absent"}]
    spec = {**last.object["spec"], "resourceClaims": claims}
    made = {"status": {"resourceClaimStatuses": [{"name": "one", "resourceClaimName": "c"}]}}
    later = Patch(at=last.at + 0.3, kind="Pod", name="m0", changes=made, subresource="status")
    acts = [*others, replace(last, object={**last.object, "spec": spec}), later]
    run = play(replace(world, acts=acts))
    (version,) = arrivals(run, world.waves[0]).values()
    assert last.at + 0.3 <= run.moment_of(version) < last.at + 0.5
