"""The excuses of totals: each is bounded, so a planted excess of its kind is still reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from lab.tests.fault_sim.company.storm import gang_before_backlog
from moorage.api.resources import PODS
from moorage.nodeshapes.annotations import RUN_SECONDS
from moorage_lab.fault_sim.acts import Create, Delete, Join, Patch
from moorage_lab.fault_sim.company import totals
from moorage_lab.fault_sim.company.cluster import WriteCall
from moorage_lab.fault_sim.company.excuses import (
    device_releases,
    node_changes,
    permit_releases,
)
from moorage_lab.fault_sim.company.outcomes import bindings, evicted_uids
from moorage_lab.fault_sim.company.plan import Plan
from moorage_lab.fault_sim.company.play import QUIET_SECONDS, CompanyRun, play
from moorage_lab.fault_sim.company.setups import PERMIT
from moorage_lab.fault_sim.company.totals import excesses
from moorage_lab.fault_sim.company.world import WAVE_LABEL, AnyWorldAct, GroupSize
from moorage_lab.fault_sim.history import nominated_of
from moorage_lab.fault_sim.users.stored import device_class, device_slice, resource_claim
from moorage_sandbox.testing.builders import node_manifest, pod_manifest

COMES = Join(at=0.0, node=node_manifest("late", cpu="1"))
GOES = Delete(at=0.0, kind="Node", name="n2", namespace="")
CLOSES = Patch(
    at=0.0, kind="Node", name="n2", changes={"spec": {"unschedulable": True}}, namespace=""
)
CHANGES = [
    pytest.param(COMES, id="a node comes"),
    pytest.param(GOES, id="a node goes"),
    pytest.param(CLOSES, id="a node is cordoned"),
]


def removed(name: str) -> Delete:
    """Return the deletion of a pod, after the gang was placed."""
    return Delete(at=30.0, kind="Pod", name=name, namespace="default")


def with_change(change: AnyWorldAct, at: float) -> CompanyRun:
    """Play a gang of six on one node; another node, too small for its pods, changes."""
    return with_acts(replace(change, at=at))


def with_acts(*more: AnyWorldAct, grace: int = 0) -> CompanyRun:
    """Play a gang of six with more acts, each before the acts of the same moment."""
    world = gang_before_backlog(6, grace=grace)
    acts = sorted([*more, *world.acts], key=lambda act: act.at)
    small = node_manifest("n2", cpu="100m")
    return play(replace(world, nodes=[*world.nodes, small], acts=acts))


def of_rule(run: CompanyRun, rule: str) -> list[tuple[float, float]]:
    """Return the amount and what is allowed, of each excess of a rule."""
    return [(each.amount, each.allowed) for each in excesses(run) if each.rule == rule]


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    ("later", "allowed"),
    [
        pytest.param(0, 4, id="a plan for the moment of the change evicts nothing"),
        pytest.param(1, 5, id="a plan for the moment of the change evicts one pod"),
        pytest.param(2, 6, id="a plan for the moment of the change evicts two pods"),
    ],
)
def test_a_change_of_nodes_excuses_as_many_evictions_as_a_new_plan(
    change: AnyWorldAct, later: int, allowed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(totals, "plan_of", lambda *_args, **_more: Plan(evictions=4))
    monkeypatch.setattr(totals, "later_plan", lambda *_args: Plan(evictions=later))
    found = [(each.rule, each.amount, each.allowed) for each in excesses(with_change(change, 20.0))]
    assert found == ([("evictions", 6, allowed)] if allowed < 6 else [])


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    ("at", "in_vain"),
    [
        pytest.param(1.5, 0, id="right before the bindings"),
        pytest.param(10.0, 0, id="between bindings and evictions"),
        pytest.param(20.0, 6, id="after the evictions"),
    ],
)
def test_a_change_of_nodes_excuses_only_bindings_that_it_may_explain(
    change: AnyWorldAct, at: float, in_vain: int
) -> None:
    """The wave counts as come before the pods that it evicts were bound."""
    run = replace(with_change(change, at), wave_versions={1: 0})
    found = [each.amount for each in excesses(run) if each.rule == "bound-in-vain"]
    assert found == ([in_vain] if in_vain else [])


def test_a_released_device_excuses_bindings_before_it_if_the_preemptor_needs_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A preemptor needs a whole node and its one device, which a pod has until 20 s."""
    holds: dict[str, Any] = {"resourceClaims": [{"name": "one", "resourceClaimName": "first"}]}
    needs: dict[str, Any] = {"resourceClaims": [{"name": "one", "resourceClaimName": "own"}]}
    needs["priorityClassName"] = "high"
    labels = {"app": "gang", WAVE_LABEL: "1"}
    acts: list[AnyWorldAct] = [
        Create(at=1.0, object=device_class("device")),
        Create(at=1.0, object=device_slice("device", "n1")),
        Create(at=1.0, object=resource_claim("device", "first")),
        Create(at=1.0, object=resource_claim("device", "own")),
        Create(at=2.0, object=pod_manifest("holder", cpu="1", **holds)),
        Create(at=15.0, object=pod_manifest("m0", cpu="8", labels=labels, **needs)),
        Create(at=17.0, object=pod_manifest("small", cpu="1")),
        Delete(at=20.0, kind="Pod", name="holder", namespace="default"),
        Delete(at=20.0, kind="ResourceClaim", name="first", namespace="default"),
    ]
    world = gang_before_backlog(1)
    run = play(replace(world, acts=[world.acts[0], *acts]))
    assert excesses(run) == []
    (small,) = evicted_uids(run)
    assert device_releases(run, small) == []
    monkeypatch.setattr(totals, "device_releases", lambda *_args: [])
    assert of_rule(run, "bound-in-vain") == [(1, 0)]


def with_release(features: tuple[str, ...]) -> CompanyRun:
    """Play a gang of six, and a member of another group that gives up the node that it had."""
    other = pod_manifest("other", labels={"app": "other"}, schedulerName="nobody")
    changes = [{"status": {"nominatedNodeName": name}} for name in ("n1", None)]
    acts = [
        Patch(at=20.0 + at, kind="Pod", name="other", changes=each, subresource="status")
        for at, each in enumerate(changes)
    ]
    run = with_acts(Create(at=2.0, object=other), *acts)
    return replace(run, world=replace(run.world, features=features))


def test_only_other_groups_give_up_room_at_permit() -> None:
    run = with_release((PERMIT,))
    (release,) = permit_releases(run, "gang")
    assert run.moment_of(release) == pytest.approx(21.0, abs=0.1)
    assert permit_releases(run, "other") == []
    assert permit_releases(with_release(()), "gang") == []


@pytest.mark.parametrize(
    ("release", "allowed"),
    [
        pytest.param(lambda versions: min(versions) - 1, [], id="right before the pods are bound"),
        pytest.param(max, [(6, 4)], id="when they are bound"),
    ],
)
def test_room_given_up_at_permit_excuses_pods_that_are_bound_right_after(
    release: Callable[[list[int]], int],
    allowed: list[tuple[int, int]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = with_acts()
    at = release([bindings(run)[uid] for uid in evicted_uids(run)])
    monkeypatch.setattr(totals, "plan_of", lambda *_args, **_more: Plan(evictions=4))
    monkeypatch.setattr(totals, "permit_releases", lambda *_args: [at])
    assert of_rule(run, "evictions") == allowed


@pytest.mark.parametrize("change", CHANGES)
def test_a_node_that_no_member_is_nominated_to_excuses_no_half_group(change: AnyWorldAct) -> None:
    run = with_change(change, 15.0)
    run = replace(run, world=replace(run.world, groups=(GroupSize(name="gang", least=7),)))
    assert [(each.rule, each.amount) for each in excesses(run)] == [("half-groups", 6)]


def plan_without_place(run: CompanyRun, *_args: object, **_more: object) -> Plan:
    """Return a plan of four evictions, in which no pod of the wave finds a place."""
    pods = [record.decode() for record in run.store.shelf(PODS.qualified).records()]
    metas = [pod["metadata"] for pod in pods if WAVE_LABEL in pod["metadata"].get("labels", {})]
    return Plan(evictions=4, waiting=frozenset(meta["uid"] for meta in metas))


@pytest.mark.parametrize(
    ("acts", "grace", "later", "allowed"),
    [
        pytest.param([], 0, 0, 4, id="they run, their own plan evicts nothing"),
        pytest.param([], 0, 1, 5, id="they run, their own plan evicts one pod"),
        pytest.param([], 300, 1, 4, id="they never run"),
        pytest.param([replace(GOES, at=15.0)], 300, 1, 4, id="a node goes before the evictions"),
        pytest.param([replace(GOES, at=20.0)], 300, 0, 4, id="a node goes, no plan evicts a pod"),
        pytest.param([replace(GOES, at=20.0)], 300, 1, 5, id="a node goes after the evictions"),
    ],
)
def test_evictions_for_pods_without_a_place_in_the_plan_are_excused_by_their_own_plan(
    acts: list[AnyWorldAct],
    grace: int,
    later: int,
    allowed: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def before_evictions(run: CompanyRun, version: int, app: str) -> int:
        assert app == "gang"
        first = min(evicted_uids(run).values())
        return later if version == first - 1 else 0

    monkeypatch.setattr(totals, "plan_of", plan_without_place)
    monkeypatch.setattr(totals, "own_evictions", before_evictions)
    assert of_rule(with_acts(*acts, grace=grace), "evictions") == [(6, allowed)]


LARGE = Create(
    at=20.0,
    object=pod_manifest("large", cpu="100", labels={"app": "gang"}, priorityClassName="high"),
)


@pytest.mark.parametrize(
    ("acts", "half"),
    [
        pytest.param([removed("m0")], [], id="a member that had a node is gone"),
        pytest.param([LARGE, removed("large")], [(6, 0)], id="a pod that had no node is gone"),
        pytest.param([LARGE, removed("other")], [(6, 0)], id="a pod of no group is gone"),
    ],
)
def test_only_the_loss_of_a_placed_member_excuses_a_half_group(
    acts: list[AnyWorldAct], half: list[tuple[float, float]]
) -> None:
    other = Create(at=20.0, object=pod_manifest("other", cpu="10m", labels={"app": "other"}))
    run = with_acts(other, *acts)
    run = replace(run, world=replace(run.world, groups=(GroupSize(name="gang", least=7),)))
    assert of_rule(run, "half-groups") == half


def test_a_nominated_node_that_went_long_before_the_bindings_excuses_no_half_group() -> None:
    world = gang_before_backlog(6, grace=5)
    acts: list[AnyWorldAct] = [
        replace(GOES, at=16.0),
        Join(at=18.0, node=node_manifest("n3", cpu="4")),
    ]
    nodes = [node_manifest(name, cpu="4") for name in ("n1", "n2")]
    groups = (GroupSize(name="gang", least=7),)
    run = play(replace(world, nodes=nodes, acts=[*world.acts, *acts], groups=groups))
    log = run.store.shelf(PODS.qualified).log
    pods = [change.record.decode() for change in log.since(0, len(log)) or ()]
    assert "n2" in {nominated_of(pod) for pod in pods}
    assert of_rule(run, "half-groups") == [(6, 0)]


@pytest.mark.parametrize(
    ("before_end", "count"),
    [
        pytest.param(QUIET_SECONDS - 5.0, 0, id="right after a pod ended by itself"),
        pytest.param(0.5, 1, id="once the pods that wait were tried"),
    ],
)
def test_a_pod_that_ends_late_excuses_writes_for_a_while(before_end: float, count: int) -> None:
    ends = pod_manifest("ends", cpu="10m", restartPolicy="Never")
    ends["metadata"].setdefault("annotations", {})[RUN_SECONDS] = "37"
    run = with_acts(Create(at=5.0, object=ends))
    late = WriteCall(
        at=run.seconds - before_end,
        version=run.quiet_version + 1,
        program="controllers",
        method="PATCH",
        path="/api/v1/namespaces/default/pods/p",
        status=200,
    )
    found = of_rule(replace(run, writes=[*run.writes, late]), "writes-at-rest")
    assert found == ([(count, 0)] if count else [])


def test_a_pod_of_a_node_that_went_counts_until_it_has_failed() -> None:
    """Garbage collection marks it as failed, and removes it: both are changes of their own."""
    world = gang_before_backlog(6, end_seconds=100.0)
    lost = pod_manifest("lost", cpu="10m", nodeName="n2")
    acts = sorted([*world.acts, Create(at=5.0, object=lost), replace(GOES, at=20.0)], key=at_of)
    run = play(replace(world, nodes=[*world.nodes, node_manifest("n2", cpu="100m")], acts=acts))
    goes, *changes = node_changes(run, world.waves[0], run.seconds)
    log = run.store.shelf(PODS.qualified).log
    phases = {
        change.version: change.record.decode()["status"]["phase"]
        for change in log.since(goes, len(log)) or ()
        if change.version in changes
    }
    assert run.moment_of(goes) == pytest.approx(20.0, abs=0.1)
    assert list(phases.values()) == ["Failed", "Failed"]


def at_of(act: AnyWorldAct) -> float:
    """Return the moment of an act."""
    return act.at
