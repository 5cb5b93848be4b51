"""Rules for pods that wait, and for what a scheduler counts: each holds, and each is broken."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from lab.tests.fault_sim.pasts import LATER, a_pod, history, of_default, stored, with_claims
from moorage.base.clock import NS_PER_SECOND
from moorage.base.rng import Random, Streams
from moorage.framework.cycle_state import CycleState
from moorage.snapshot.pod_groups import GroupKey, GroupMembers
from moorage_lab.fault_sim.broken_plugin import BrokenPlugin, PluginFaults
from moorage_lab.fault_sim.invariants.at_rest import AT_REST
from moorage_lab.fault_sim.invariants.inside import AT_END
from moorage_lab.fault_sim.invariants.waiting import WAITING
from moorage_sandbox.testing.builders import Manifest
from moorage_sandbox.testing.builders import pod as typed_pod


@pytest.mark.parametrize(
    ("called_off", "report"),
    [
        pytest.param(False, {}, id="nothing happened"),
        pytest.param(False, {"reason": "FailedScheduling", "message": "0/1 nodes"}, id="no room"),
        pytest.param(True, {"reason": "Preempted"}, id="its place was taken before it was bound"),
        pytest.param(
            True,
            {"message": 'running PreBind plugin "VolumeBinding": Operation cannot be fulfilled'},
            id="its claim was bound for another member at the same time",
        ),
    ],
)
def test_a_gang_may_lack_a_member_that_failed_after_the_group_was_decided(
    called_off: bool, report: dict[str, str]
) -> None:
    member: dict[str, Any] = {"schedulingGroup": {"podGroupName": "g"}}
    past = history(a_pod("p", "n1", **member), a_pod("q", **member))
    past.excused_groups = set()
    group = of_default("g", spec={"schedulingPolicy": {"gang": {"minCount": 2}}})
    stored(past, "podgroups.scheduling.k8s.io", group)
    if report:
        stored(past, "events", of_default("e", involvedObject={"uid": "q"}, **report))
    (gangs,) = [each for each in WAITING if each.name == "gangs"]
    broken = [] if called_off else ["group default/g: 1 of 2 pods have a node"]
    cluster: Any = SimpleNamespace(plugin_faults=SimpleNamespace(spoiled=set()), history=past)
    assert list(gangs.broken(cluster)) == broken


def test_a_gang_may_lack_members_while_a_finalizer_keeps_one_that_ended() -> None:
    member: dict[str, Any] = {"schedulingGroup": {"podGroupName": "g"}}
    ended = a_pod("p", "n1", **member)
    ended["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:10Z"
    past = history(ended, a_pod("q", **member))
    group = of_default("g", spec={"schedulingPolicy": {"gang": {"minCount": 2}}})
    stored(past, "podgroups.scheduling.k8s.io", group)
    (gangs,) = [each for each in WAITING if each.name == "gangs"]
    cluster: Any = SimpleNamespace(history=past)
    assert list(gangs.broken(cluster)) == []


class Groups(dict[GroupKey, GroupMembers]):
    """The groups of a scheduler."""

    def all_groups(self) -> Groups:
        return self


def members_of(*, counted: list[str], placed: list[str], there: list[str]) -> Any:
    """Return a cluster whose scheduler counts members of a group as placed."""
    members = GroupMembers()
    for uid in {*counted, *placed, *there}:
        members.pods[uid] = typed_pod(uid)
    members.assigned = dict.fromkeys(counted)
    core = SimpleNamespace(snapshot=SimpleNamespace(groups=Groups({GroupKey("n", "g"): members})))
    replica = SimpleNamespace(
        scheduler=SimpleNamespace(core=core, synced=True), process=SimpleNamespace(dead=False)
    )
    past = history(*(a_pod(uid, "n1" if uid in placed else "") for uid in there))
    return SimpleNamespace(history=past, replicas={"scheduler-0": replica})


@pytest.mark.parametrize(
    ("counted", "placed", "there", "broken"),
    [
        (["p"], ["p"], ["p", "q"], False),
        ([], ["p"], ["p", "q"], True),
        (["p", "q"], ["p"], ["p", "q"], True),
        (["p"], ["p"], [], True),
    ],
)
def test_a_scheduler_counts_the_members_that_have_a_node(
    counted: list[str], placed: list[str], there: list[str], broken: bool
) -> None:
    (rule,) = [each for each in AT_END if each.name == "members"]
    cluster = members_of(counted=counted, placed=placed, there=there)
    assert bool(list(rule.broken(cluster))) == broken


@pytest.mark.parametrize(
    ("events", "undisturbed", "missing"),
    [
        ([("Scheduled", "p"), ("Preempted", "v")], True, 0),
        ([("Scheduled", "p")], True, 1),
        ([("Preempted", "v")], True, 1),
        ([], True, 2),
        ([], False, 0),
    ],
)
def test_events_tell_of_bindings_and_evictions(
    events: list[tuple[str, str]], undisturbed: bool, missing: int
) -> None:
    past = history(a_pod("p", "n1"))
    past.evicted.add("v")
    for number, (reason, uid) in enumerate(events):
        note = of_default(f"e{number}", reason=reason, involvedObject={"uid": uid})
        stored(past, "events", note)
    (rule,) = [each for each in AT_REST if each.name == "events"]
    cluster: Any = SimpleNamespace(history=past, undisturbed=undisturbed)
    assert len(list(rule.broken(cluster))) == missing


@pytest.mark.parametrize(
    ("promised", "nominated", "gated", "broken"),
    [
        pytest.param("n1", "n1", False, 0, id="the status promises what is kept"),
        pytest.param("", None, False, 0, id="neither promises anything"),
        pytest.param("n1", None, False, 1, id="a promise is not kept"),
        pytest.param("n1", None, True, 0, id="a later leader found the pod held back"),
        pytest.param("", "n1", False, 1, id="a node is kept that the status does not promise"),
        pytest.param("", "n1", True, 1, id="a node is kept for a pod that is held back"),
    ],
)
def test_a_leader_keeps_the_nodes_that_statuses_promise(
    promised: str, nominated: str | None, gated: bool, broken: int
) -> None:
    waits = a_pod("p")
    waits["status"] = {"nominatedNodeName": promised}
    nominator = SimpleNamespace(node_of={"p": nominated}.get)
    held_back = SimpleNamespace(pod=SimpleNamespace(uid="p"), gating_reasons=("gang",))
    pending = SimpleNamespace(gated=[held_back] if gated else [])
    queue = SimpleNamespace(nominator=nominator, pending=lambda: pending)
    core = SimpleNamespace(queue=queue)
    leader = SimpleNamespace(
        leading=True, identity="scheduler-0.1", scheduler=SimpleNamespace(core=core)
    )
    cluster: Any = SimpleNamespace(
        history=history(waits),
        replicas={"scheduler-0": leader},
    )
    (rule,) = [each for each in WAITING if each.name == "promises"]
    assert len(list(rule.broken(cluster))) == broken


@pytest.mark.parametrize(("cpu", "broken"), [("1", 0), ("3", 1)])
def test_no_pod_keeps_the_promise_of_a_node_that_is_too_small(cpu: str, broken: int) -> None:
    waits = a_pod("p", cpu=cpu)
    waits["status"] = {"nominatedNodeName": "n1"}
    past = history(waits)
    past.popped_ns["p"] = LATER
    cluster: Any = SimpleNamespace(history=past, replicas={}, undisturbed=True)
    (rule,) = [each for each in WAITING if each.name == "promised-in-vain"]
    assert len(list(rule.broken(cluster))) == broken


@pytest.mark.parametrize("reported", [False, True])
def test_a_gang_that_waits_says_why(reported: bool) -> None:
    past = history(a_pod("p", schedulingGroup={"podGroupName": "g"}))
    past.popped_ns["p"] = 1
    status = {"conditions": [{"type": "PodGroupScheduled", "status": "False"}]} if reported else {}
    stored(past, "podgroups.scheduling.k8s.io", of_default("g", status=status))
    cluster: Any = SimpleNamespace(history=past, undisturbed=True)
    (rule,) = [each for each in WAITING if each.name == "gang-says"]
    assert bool(list(rule.broken(cluster))) != reported


@pytest.mark.parametrize("spoiled", [False, True])
def test_half_a_gang_is_excused_where_a_plugin_failed_a_member_in_pre_bind(spoiled: bool) -> None:
    group = {"podGroupName": "g"}
    past = history(a_pod("p", "n1", schedulingGroup=group), a_pod("q", schedulingGroup=group))
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    stored(past, "podgroups.scheduling.k8s.io", of_default("g", spec=spec))
    plugin_faults = SimpleNamespace(spoiled={"q"} if spoiled else set())
    cluster: Any = SimpleNamespace(history=past, plugin_faults=plugin_faults)
    (rule,) = [each for each in WAITING if each.name == "gangs"]
    assert bool(list(rule.broken(cluster))) != spoiled


@pytest.mark.parametrize(
    ("fault", "spoiled"),
    [
        pytest.param("refuses", {"q"}, id="a refusal at Permit may leave half a gang"),
        pytest.param("", set(), id="a pod that is let go is as good as any"),
    ],
)
def test_the_broken_plugin_tells_whom_it_failed_at_permit(fault: str, spoiled: set[str]) -> None:
    class OneFault(PluginFaults):
        def acts(self, fault_kind: str, share: float, rng: Random) -> bool:
            del share, rng
            return fault_kind == f"plugin-{fault}"

    faults = OneFault()
    handle: Any = SimpleNamespace(streams=Streams(1))
    pod: Any = SimpleNamespace(uid="q")
    BrokenPlugin(None, handle, plugin_faults=faults).permit(CycleState(), pod, "n1")
    assert faults.spoiled == spoiled


@pytest.mark.parametrize(("node", "broken"), [("", 1), ("n1", 0)])
def test_no_claim_is_reserved_for_a_pod_that_waits(node: str, broken: int) -> None:
    past = with_claims(c=["p"])
    past.pods["p"] = a_pod("p", node)
    cluster: Any = SimpleNamespace(history=past, faultless=True)
    (rule,) = [each for each in WAITING if each.name == "reserved-in-vain"]
    assert len(list(rule.broken(cluster))) == broken


def test_room_that_is_kept_for_a_pod_held_back_since_proves_no_lost_wakeup() -> None:
    """A scheduler that has just been started does not know the promise."""
    promised = a_pod("p")
    promised["status"] = {"nominatedNodeName": "n1"}
    held_back = SimpleNamespace(pod=SimpleNamespace(uid="p"), gating_reasons=("gang",))
    pending = SimpleNamespace(gated=[held_back])
    core = SimpleNamespace(queue=SimpleNamespace(pending=lambda: pending))
    leader = SimpleNamespace(leading=True, scheduler=SimpleNamespace(core=core))
    cluster: Any = SimpleNamespace(
        history=history(promised, a_pod("q")),
        replicas={"scheduler-0": leader},
    )
    (lost,) = [each for each in WAITING if each.name == "no-lost-wakeup"]
    assert list(lost.broken(cluster)) == []


@pytest.mark.parametrize("undisturbed", [False, True])
def test_a_faulty_connection_may_hide_the_change_of_a_node(undisturbed: bool) -> None:
    """A change of a node wakes no pod that another's anti-affinity keeps away, as upstream."""
    apart = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "zone"}
    rules = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    past = history(a_pod("q", "n1", affinity=rules), a_pod("p", labels={"app": "a"}))
    past.node_changed_ns["n2"], past.popped_ns["p"] = NS_PER_SECOND, 6 * NS_PER_SECOND
    (fits_nowhere,) = [each for each in WAITING if each.name == "fits-nowhere"]
    cluster: Any = SimpleNamespace(history=past, undisturbed=undisturbed)
    broken = ["default/p waits, and n2 has room for it"] if undisturbed else []
    assert list(fits_nowhere.broken(cluster)) == broken


@pytest.mark.parametrize("by_devices", [False, True])
def test_a_pod_that_asks_for_devices_by_a_resource_may_lack_them(by_devices: bool) -> None:
    """The naive rules know which nodes offer a resource themselves, and no devices."""
    card = "example.com/card"
    pod = a_pod("p")
    pod["spec"]["containers"][0]["resources"]["requests"][card] = "1"
    past = history(pod, nodes=1)
    past.popped_ns["p"] = 6 * NS_PER_SECOND
    device_class = {"metadata": {"name": "c"}, "spec": {"extendedResourceName": card}}
    if by_devices:
        stored(past, "deviceclasses.resource.k8s.io", device_class)
    else:
        past.nodes["n1"]["status"]["allocatable"][card] = "1"
    (rule,) = [each for each in WAITING if each.name == "fits-nowhere"]
    cluster: Any = SimpleNamespace(history=past, undisturbed=True)
    broken = [] if by_devices else ["default/p waits, and n1 has room for it"]
    assert list(rule.broken(cluster)) == broken


@pytest.mark.parametrize(
    ("volumes", "changed_s", "broken"),
    [
        pytest.param([{"name": "v"}], 7, 0, id="a volume has changed since"),
        pytest.param([{"name": "v"}], 5, 1, id="the attempt knew of the change"),
        pytest.param([], 7, 1, id="a pod without volumes"),
    ],
)
def test_a_volume_that_changes_wakes_no_pod_that_lacked_room(
    volumes: list[Manifest], changed_s: int, broken: int
) -> None:
    past = history(a_pod("low", "n1", cpu="2"), a_pod("p", priority=1, volumes=volumes), nodes=1)
    past.popped_ns["p"], past.volume_changed_ns = 6 * NS_PER_SECOND, changed_s * NS_PER_SECOND
    (rule,) = [each for each in WAITING if each.name == "preempts"]
    cluster: Any = SimpleNamespace(history=past, undisturbed=True)
    assert len(list(rule.broken(cluster))) == broken
