"""Rules for each write: every invariant is broken by a write made for it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from lab.tests.fault_sim.pasts import (
    APART,
    DEVICE,
    DISK,
    EVENLY,
    LATER,
    LEAVING,
    LIMITED,
    NEAR,
    TAINT,
    WEB,
    a_pod,
    binding,
    ending,
    eviction,
    history,
    named,
    outside_of_every_zone,
    promised,
    refusal,
    report,
    stored,
    using,
    with_budget,
    with_claims,
    with_quotas,
    with_volumes,
)
from moorage.api.coscheduling import GROUP_LABEL
from moorage.base import aio
from moorage.base.clock import NS_PER_SECOND
from moorage.client.transport import Answer, Call
from moorage_lab.fault_sim.history import Placed, Write
from moorage_lab.fault_sim.invariants.at_writes import BINDING, broken_by, broken_by_server, fits
from moorage_lab.fault_sim.invariants.evictions import EVICTION
from moorage_lab.fault_sim.invariants.immutable import IMMUTABLE
from moorage_lab.fault_sim.invariants.on_node import REPORTED
from moorage_lab.fault_sim.invariants.waiting import WAITING
from moorage_lab.fault_sim.invariants.write_case import WriteCase, placed
from moorage_lab.fault_sim.turns import InTurn
from moorage_sandbox.testing.builders import Manifest

DB = {"app": "db"}
TEAM = {GROUP_LABEL: "g"}

BROKEN: dict[str, Callable[[], WriteCase]] = {
    "bound-once": lambda: binding(a_pod("p", "n1"), history(), before=a_pod("p", "n2")),
    "node-exists": lambda: binding(a_pod("p", "n9"), history()),
    "promised-room": lambda: binding(
        a_pod("p", "n1"), promised(a_pod("q", priority=5, cpu="1500m"))
    ),
    "room": lambda: binding(a_pod("p", "n1", cpu="2"), history(a_pod("q", "n1"))),
    "ports": lambda: binding(
        a_pod("p", "n1", host_ports=[80]), history(a_pod("q", "n1", host_ports=[80]))
    ),
    "taints": lambda: binding(a_pod("p", "n1"), history(taints=TAINT)),
    "selector": lambda: binding(a_pod("p", "n1", node_selector={"zone": "2"}), history()),
    "anti-affinity": lambda: binding(
        a_pod("p", "n1", labels=WEB), history(a_pod("q", "n1", labels=WEB, affinity=APART))
    ),
    "spread": lambda: binding(
        a_pod("p", "n1", labels=WEB, topologySpreadConstraints=EVENLY),
        history(a_pod("q", "n1", labels=WEB)),
    ),
    "gates": lambda: binding(a_pod("p", "n1", gates=["example.com/wait"]), history()),
    "own-pods": lambda: binding(
        {**a_pod("p", "n1"), "spec": {**a_pod("p", "n1")["spec"], "schedulerName": "other"}},
        history(),
    ),
    "not-leaving": lambda: binding(a_pod("p", "n1"), history(), before=LEAVING),
    "affinity": lambda: binding(
        a_pod("p", "n2", affinity=NEAR), history(a_pod("q", "n1", labels={"app": "db"}))
    ),
    "volumes": lambda: binding(a_pod("p", "n2", volumes=using("a")), with_volumes()),
    "disks": lambda: binding(
        a_pod("p", "n1", volumes=[DISK]), history(a_pod("q", "n1", volumes=[DISK]))
    ),
    "features": lambda: binding(a_pod("p", "n1", hostNetwork=True, hostUsers=False), history()),
    "single-user": lambda: binding(
        a_pod("p", "n1", volumes=using("a")),
        with_volumes(a_pod("q", "n1", volumes=using("a")), mode="ReadWriteOncePod"),
    ),
    "volume-limit": lambda: binding(
        a_pod("p", "n1", volumes=using("a")),
        stored(
            with_volumes(a_pod("q", "n1", volumes=using("b"))), "csinodes.storage.k8s.io", LIMITED
        ),
    ),
    "device-once": lambda: binding(a_pod("p", "n1"), with_claims(c=["p"], d=["q"])),
    "reserved": lambda: binding(a_pod("p", "n1", resourceClaims=DEVICE), with_claims(c=["q"])),
    "quota": lambda: binding(
        a_pod("p", "n1", namespace="red"),
        with_quotas(a_pod("q", "n2", namespace="red"), red=("2", "1500m")),
    ),
    "victim-quota": lambda: eviction(
        a_pod("v", "n1", namespace="red"),
        with_quotas(a_pod("p", namespace="blue"), red=("1", "2"), blue=("1", "2")),
    ),
    "victim-polite": lambda: eviction(
        a_pod("v", "n1"), history(a_pod("p", priority=5, cpu="2", preemptionPolicy="Never"))
    ),
    "victim-needed": lambda: eviction(a_pod("v", "n1"), history(a_pod("p", priority=5, cpu="3"))),
    "victim-budget": lambda: eviction(
        a_pod("v", "n1", labels=WEB),
        with_budget(history(a_pod("p", priority=5, cpu="2"), a_pod("q", "n2")), "web"),
    ),
    "victim-priority": lambda: eviction(
        a_pod("v", "n1", priority=5), history(a_pod("p", priority=5))
    ),
    "victim-spared": lambda: msgspec.structs.replace(
        eviction(a_pod("v", "n1"), history(a_pod("p", priority=5), ending(a_pod("q", "n1")))),
        undisturbed=True,
    ),
    "victim-told": lambda: eviction(
        a_pod("v", "n1"), history(a_pod("p", priority=5)), reported=False
    ),
    "victim-placed": lambda: eviction(a_pod("v"), history(a_pod("p", priority=5))),
    "announced": lambda: refusal(""),
    "lesser-promise": lambda: report(
        a_pod("p"), claimed_by=a_pod("q", priority=5), claimed_ns=LATER - 9 * NS_PER_SECOND
    ),
}


@pytest.mark.parametrize("name", [each.name for each in (*BINDING, *EVICTION, *REPORTED)])
def test_each_invariant_can_be_broken(name: str) -> None:
    assert [broken for broken, _ in broken_by(BROKEN[name]())] == [name]


def test_a_pod_that_names_another_node_breaks_the_rule_of_selectors() -> None:
    case = binding(a_pod("p", "n1", affinity=named("n2")), history())
    assert [broken for broken, _ in broken_by(case)] == ["selector"]


def changed(before: Manifest, now: Manifest) -> Write:
    """Return a change of a pod by a user."""
    for version, each in enumerate((before, now)):
        each["metadata"]["resourceVersion"] = str(version)
    return Write(at_ns=LATER, by="user", path="", resource="pods", now=now, before=before)


FINISHED = {**a_pod("p", "n1"), "status": {"phase": "Failed"}}
NAMESAKE = a_pod("p")
NAMESAKE["metadata"]["uid"] = "another"

NOT_KEPT = {
    "place-kept": [
        changed(a_pod("p", "n1"), a_pod("p", "n2")),
        changed(a_pod("p", "n1"), a_pod("p")),
    ],
    "end-kept": [changed(LEAVING, a_pod("p")), changed(FINISHED, a_pod("p", "n1"))],
    "identity-kept": [changed(a_pod("p"), NAMESAKE)],
}


@pytest.mark.parametrize("name", [each.name for each in IMMUTABLE])
def test_each_rule_of_the_server_can_be_broken(name: str) -> None:
    for write in NOT_KEPT[name]:
        assert [broken for broken, _ in broken_by_server(write)] == [name]


@pytest.mark.parametrize(
    ("state", "broken"), [({"running": {}}, []), ({"terminated": {}}, ["end-kept"])]
)
def test_a_node_may_report_late_about_a_pod_that_a_user_ended(
    state: dict[str, Any], broken: list[str]
) -> None:
    ended = {"phase": "Succeeded", "containerStatuses": [{"name": "main", "state": state}]}
    revived = changed({**a_pod("p", "n1"), "status": ended}, a_pod("p", "n1"))
    by_agent = msgspec.structs.replace(revived, by="nodes")
    assert [name for name, _ in broken_by_server(by_agent)] == broken


def test_a_pod_that_gets_a_node_breaks_no_rule_of_the_server() -> None:
    assert list(broken_by_server(changed(a_pod("p"), a_pod("p", "n1")))) == []


async def test_a_write_overtakes_a_status_that_has_no_answer() -> None:
    overtakings: list[str] = []
    release = asyncio.Event()

    class Slow:
        async def request(self, call: Call) -> Answer:
            await release.wait()
            return Answer(200, {}, b"")

        def stream(self, call: Call) -> Any:
            raise NotImplementedError

        async def close(self) -> None:
            """Do nothing."""

    reused = "/api/v1/namespaces/default/pods/r"
    calls = InTurn(Slow(), overtakings.append, reused.__eq__)
    path = "/api/v1/namespaces/default/pods/"
    async with asyncio.TaskGroup() as tasks:
        for sent in ("p/binding", "p/status", "q/status", "p/status", "r/status", "r/status"):
            tasks.create_task(calls.request(Call("PATCH", path + sent)))
        await aio.sleep(0)
        release.set()
    assert len(overtakings) == 1
    assert "pods/p/status" in overtakings[0]


@pytest.mark.parametrize(("reported", "broken"), [(True, False), (False, True)])
def test_a_pod_says_why_it_waits(reported: bool, broken: bool) -> None:
    waits = a_pod("p")
    if reported:
        false = {"type": "PodScheduled", "status": "False"}
        why = {"reason": "Unschedulable", "message": "0/1 nodes are available"}
        waits["status"] = {"conditions": [false | why]}
    (explained,) = [each for each in WAITING if each.name == "explained"]
    cluster: Any = SimpleNamespace(history=history(waits), replicas={})
    assert bool(list(explained.broken(cluster))) == broken


ALLOWED: dict[str, Callable[[], WriteCase]] = {
    "fits": lambda: binding(a_pod("p", "n1"), history(a_pod("q", "n1"))),
    "tolerates": lambda: binding(
        a_pod("p", "n1", tolerations=[{"key": "gpu", "operator": "Exists"}]), history(taints=TAINT)
    ),
    "the other zone": lambda: binding(
        a_pod("p", "n2", labels=WEB, topologySpreadConstraints=EVENLY),
        history(a_pod("q", "n1", labels=WEB)),
    ),
    "borrowed within the sum of the minimums": lambda: binding(
        a_pod("p", "n1", namespace="red"),
        with_quotas(a_pod("q", "n2", namespace="red"), red=("1", "2"), blue=("1", "2")),
    ),
    "borrowed room is given back": lambda: eviction(
        a_pod("v", "n1", namespace="red"),
        with_quotas(a_pod("p", namespace="blue"), red=("500m", "2"), blue=("1", "2")),
    ),
    "the rest of a victim's gang, on a node that the preemptor cannot have": lambda: eviction(
        a_pod("v", "n1", labels=TEAM),
        history(
            a_pod("p", priority=5, cpu="2"),
            a_pod("q", "n1", priority=5),
            a_pod("w", "n2", labels=TEAM),
        ),
    ),
    "room that the rest of a victim's gang makes beside it": lambda: msgspec.structs.replace(
        eviction(
            a_pod("v", "n1", labels=TEAM),
            history(a_pod("p", priority=5), ending(a_pod("w", "n1", labels=TEAM))),
        ),
        undisturbed=True,
    ),
    "a promise to a member of a group, of the scheduler before": lambda: binding(
        a_pod("p", "n1"),
        promised(
            a_pod("q", priority=5, cpu="1500m", schedulingGroup={"podGroupName": "g"}),
            by="scheduler-0.1",
        ),
    ),
    "the first pod of its kind, beside one on a node outside of every zone": lambda: binding(
        a_pod("p", "n1", labels=DB, affinity=NEAR), outside_of_every_zone(a_pod("q", labels=DB))
    ),
    "a lower victim": lambda: eviction(a_pod("v", "n1"), history(a_pod("p", priority=5))),
    "a node that was claimed just now": lambda: report(
        a_pod("p"), claimed_by=a_pod("q", priority=5), claimed_ns=LATER - NS_PER_SECOND
    ),
    "a node that a lesser pod claimed": lambda: report(
        a_pod("p", priority=5), claimed_by=a_pod("q"), claimed_ns=LATER - 9 * NS_PER_SECOND
    ),
    "a claim for which all victims leave already": lambda: report(
        a_pod("p"),
        claimed_by=a_pod("q", priority=5),
        claimed_ns=LATER - 9 * NS_PER_SECOND,
        evicts=False,
    ),
    "another node": lambda: report(
        a_pod("p"),
        claimed_by=a_pod("q", priority=5),
        claimed_ns=LATER - 9 * NS_PER_SECOND,
        node="n2",
    ),
    "a node that was told": lambda: refusal("n1"),
    "a refusal at once": lambda: refusal("", wait_seconds=0.5),
    "a member, which is tried with its group": lambda: refusal("", labels={GROUP_LABEL: "g"}),
    "a claim of one pod, where the node of its user is gone": lambda: binding(
        a_pod("p", "n1", volumes=using("a")),
        with_volumes(a_pod("q", "n9", volumes=using("a")), mode="ReadWriteOncePod"),
    ),
    "a node by its name": lambda: binding(a_pod("p", "n1", affinity=named("n1")), history()),
}


@pytest.mark.parametrize("case", ALLOWED.values(), ids=ALLOWED)
def test_what_is_allowed_breaks_nothing(case: Callable[[], WriteCase]) -> None:
    assert list(broken_by(case())) == []


def test_the_promise_to_a_member_ends_when_its_group_is_tried() -> None:
    group = {"podGroupName": "g"}
    past = promised(a_pod("q", cpu="1500m", schedulingGroup=group))
    case = binding(a_pod("p", "n1", schedulingGroup=group), past)
    assert [name for name, _ in broken_by(case)] == ["promised-room"]
    past.popped_ns["p"] = 1
    assert list(broken_by(case)) == []


def test_a_scheduler_knows_what_it_promised_to_a_member_of_a_group() -> None:
    member = a_pod("q", priority=5, cpu="1500m", schedulingGroup={"podGroupName": "g"})
    case = binding(a_pod("p", "n1"), promised(member, by="scheduler-1.1"))
    assert [name for name, _ in broken_by(case)] == ["promised-room"]


def test_a_scheduler_is_not_blamed_for_what_it_could_not_know() -> None:
    past = history(a_pod("q", "n1", cpu="2"))
    past.placed["q"] = Placed(LATER - NS_PER_SECOND, "scheduler-0.1")
    assert list(broken_by(binding(a_pod("p", "n1", cpu="2"), past))) == []
    past.placed["q"] = Placed(LATER - NS_PER_SECOND, "scheduler-1.1")
    assert [name for name, _ in broken_by(binding(a_pod("p", "n1", cpu="2"), past))] == ["room"]


@pytest.mark.parametrize(
    ("other_at", "broken"),
    [
        pytest.param(1, ["spread"], id="a pod that was decided before"),
        pytest.param(3, [], id="a pod that was decided while a plugin held this one"),
    ],
)
def test_a_domain_may_fill_up_between_a_decision_and_its_binding(
    other_at: int, broken: list[str]
) -> None:
    past = history(a_pod("q", "n1", labels=WEB))
    past.placed["q"] = Placed(LATER - NS_PER_SECOND, "scheduler-1.1")
    past.popped_ns |= {"q": 1, "p": 1}  # both in one moment
    past.popped_at |= {"q": other_at, "p": 2}
    now = a_pod("p", "n1", labels=WEB, topologySpreadConstraints=EVENLY)
    assert [name for name, _ in broken_by(binding(now, past))] == broken


def test_a_pod_that_is_placed_by_the_rules_heeds_one_that_was_tried_after_it() -> None:
    past = history(a_pod("q", "n1", labels=WEB))
    past.popped_at |= {"q": 3, "p": 2}
    now = a_pod("p", labels=WEB, topologySpreadConstraints=EVENLY)
    assert not fits(placed(now, "n1", past))
    assert fits(placed(now, "n2", past))


def test_a_pod_that_fails_while_it_is_bound_takes_no_room() -> None:
    """The scheduler forgets it when the watch shows its end, and its binding succeeds later."""
    past = history(a_pod("other", "n1", cpu="2"))
    failed = a_pod("p", "n1", cpu="2")
    assert [name for name, _ in broken_by(binding(failed, past))] == ["room"]
    failed["status"] = {"phase": "Failed"}
    assert list(broken_by(binding(failed, past))) == []


def test_a_leaving_pod_counts_for_no_domain_and_neither_does_its_removal() -> None:
    """kube-scheduler lowers the count for the removal as well: see the deviations."""
    past = history(a_pod("q", "n1", labels=WEB), ending(a_pod("leaves", "n1", labels=WEB)))
    now = a_pod("p", labels=WEB, topologySpreadConstraints=EVENLY)
    assert not fits(placed(now, "n1", past))
    assert not fits(placed(now, "n1", past, without=["leaves"]))
    assert fits(placed(now, "n1", past, without=["leaves", "q"]))
