"""The ledger of evictions under way: when a preemptor may enter the queue again."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage.framework.preemption import leaving_pods
from moorage.service.binding.evictions import EvictionLedger
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.testing.builders import node, pod

VICTIM = pod("victim", node_name="n1")


def ledger_of(
    shown: Mapping[tuple[str, str], Pod],
    nodes: Mapping[str, str],
    *,
    clock: ManualClock | None = None,
) -> EvictionLedger:
    return EvictionLedger(
        lambda namespace, name: shown.get((namespace, name)),
        nodes.get,
        clock=ManualClock(start_ns=0) if clock is None else clock,
    )


def changed(given: Pod, **metadata: str) -> Pod:
    return msgspec.structs.replace(
        given, metadata=msgspec.structs.replace(given.metadata, **metadata)
    )


def test_only_the_preemptor_is_held_while_its_evictions_run() -> None:
    ledger = EvictionLedger(
        lambda _namespace, _name: VICTIM, {VICTIM.uid: "n1"}.get, clock=ManualClock()
    )
    assert not ledger.running_for("p")
    ledger.begin_evictions("p", [VICTIM])
    assert (ledger.running_for("p"), ledger.running_for("q")) == (True, False)
    ledger.only("p", VICTIM)
    assert ledger.running_for("p")
    ledger.end_evictions("p")
    assert not ledger.running_for("p")
    ledger.end_evictions("p")


def test_the_preemptor_enters_once_its_last_victim_is_terminating_or_gone() -> None:
    shown: dict[tuple[str, str], Pod] = {VICTIM.key: VICTIM}
    nodes = {VICTIM.uid: "n1"}
    ledger = EvictionLedger(
        lambda namespace, name: shown.get((namespace, name)), nodes.get, clock=ManualClock()
    )
    ledger.begin_evictions("p", [VICTIM])
    shown.clear()
    assert ledger.running_for("p")  # others are left
    ledger.only("p", VICTIM)
    assert not ledger.running_for("p")
    shown[VICTIM.key] = changed(VICTIM, deletion_timestamp="2026-01-01T00:00:00Z")
    assert not ledger.running_for("p")
    shown[VICTIM.key] = changed(VICTIM, uid="another of that name")
    assert not ledger.running_for("p")
    shown[VICTIM.key] = VICTIM
    assert ledger.running_for("p")
    nodes.clear()  # its binding failed
    assert not ledger.running_for("p")


def test_evictions_are_counted_by_result_with_their_duration() -> None:
    ledger = EvictionLedger(
        lambda _namespace, _name: VICTIM, {VICTIM.uid: "n1"}.get, clock=ManualClock()
    )
    ledger.took(2 * NS_PER_SECOND, preemptor="pod", done=True)
    ledger.took(NS_PER_SECOND, preemptor="podgroup", done=True)
    ledger.took(5 * NS_PER_SECOND, preemptor="pod", done=False)
    assert {result: (h.count, h.total) for result, h in ledger.durations.items()} == {
        "success": (2, 3.0),
        "error": (1, 5.0),
    }


G, H = GroupKey("default", "g"), GroupKey("default", "h")
OTHER = pod("other", node_name="n2")
BOTH = {VICTIM.uid: "n1", OTHER.uid: "n2"}


def leaving(given: Pod) -> Pod:
    return changed(given, deletion_timestamp="1970-01-01T00:00:10Z")


def test_a_group_waits_until_all_its_victims_have_left_and_all_evictions_are_sent() -> None:
    shown: dict[tuple[str, str], Pod] = {VICTIM.key: VICTIM, OTHER.key: OTHER}
    ledger = ledger_of(shown, BOTH)
    assert not ledger.groups_wait
    ledger.begin_evictions("p", [VICTIM])
    ledger.begin_evictions("q", [OTHER])
    ledger.wait_together(G, ["p", "q"], [VICTIM, OTHER])
    assert (ledger.groups_wait, ledger.awaited_by(G), ledger.awaited_by(H)) == (
        True,
        True,
        False,
    )
    del shown[VICTIM.key]
    assert not ledger.end_evictions("p")
    shown[OTHER.key] = leaving(OTHER)
    assert ledger.awaited_by(G)
    del shown[OTHER.key]
    assert ledger.awaited_by(G)  # the evictions for q are not known to be sent
    assert ledger.end_evictions("q")  # the event of the last victim came before
    assert not ledger.awaited_by(G)  # the gate of one member was asked, and lets it in
    assert ledger.release_groups(lambda _group, _places: True) == {
        G: True
    }  # others are gated until now
    assert not ledger.groups_wait


@pytest.mark.parametrize(
    ("seconds", "awaited"),
    [
        pytest.param(39, True, id="within 30 s after its deletion timestamp"),
        pytest.param(41, False, id="later: a finalizer may hold the victim for ever"),
    ],
)
def test_a_group_waits_for_a_victim_that_stays_too_long(seconds: int, awaited: bool) -> None:
    clock = ManualClock(start_ns=0)
    shown = {VICTIM.key: leaving(VICTIM)}
    ledger = ledger_of(shown, BOTH, clock=clock)
    ledger.wait_together(G, [], [VICTIM])
    clock.advance(seconds)
    assert ledger.awaited_by(G) is awaited


@pytest.mark.parametrize(("seconds", "is_leaving"), [(39, True), (41, False)])
def test_no_preemptor_waits_for_a_victim_that_stays_too_long(
    seconds: int, is_leaving: bool
) -> None:
    clock = ManualClock(start_ns=0)
    ledger = ledger_of({VICTIM.key: leaving(VICTIM)}, BOTH, clock=clock)
    ledger.begin_evictions("p", [VICTIM])
    clock.advance(seconds)
    assert (ledger.is_leaving(VICTIM), ledger.waits_for_victims("p")) == (is_leaving, is_leaving)


def test_a_victim_whose_eviction_failed_is_not_waited_for() -> None:
    ledger = ledger_of({VICTIM.key: VICTIM}, BOTH)
    ledger.begin_evictions("p", [VICTIM])
    ledger.wait_together(G, ["p"], [VICTIM])
    ledger.end_evictions("p")
    assert (ledger.awaited_by(G), ledger.is_leaving(VICTIM)) == (True, True)
    ledger.give_up([VICTIM])
    assert (ledger.awaited_by(G), ledger.is_leaving(VICTIM)) == (False, False)


def test_a_victim_is_leaving_from_the_decision_until_it_has_left_its_node() -> None:
    nodes = dict(BOTH)
    ledger = ledger_of({VICTIM.key: VICTIM}, nodes)
    assert not ledger.is_leaving(VICTIM)
    ledger.begin_evictions("p", [VICTIM])
    assert ledger.is_leaving(VICTIM)
    del nodes[VICTIM.uid]
    assert not ledger.is_leaving(VICTIM)


def test_the_pods_that_leave_are_victims_and_pods_that_somebody_deleted() -> None:
    """A victim counts from the decision on. A pod that stays too long counts no more."""
    clock = ManualClock(start_ns=0)
    gone, deleted = pod("gone", node_name="n1"), leaving(pod("deleted", node_name="n2"))
    shown = {each.key: each for each in (VICTIM, OTHER, gone, deleted)}
    snapshot = Snapshot()
    for name in ("n1", "n2"):
        snapshot.table.add_node(node(name))
    for each in shown.values():
        snapshot.table.add_pod(each, each.spec.node_name)
    ledger = EvictionLedger(
        lambda namespace, name: shown.get((namespace, name)),
        snapshot.table.node_of_pod,
        clock=clock,
    )
    ledger.begin_evictions("p", [VICTIM, gone])
    snapshot.table.remove_pod(gone.uid)
    assert [each.name for each in leaving_pods(snapshot, ledger)] == ["deleted", "victim"]
    clock.advance(41)
    assert [each.name for each in leaving_pods(snapshot, ledger)] == ["victim"]


def test_a_victim_that_came_back_to_its_node_is_not_waited_for() -> None:
    """It was taken off before its binding, and is assumed on the same node anew."""
    nodes = dict(BOTH)
    ledger = ledger_of({VICTIM.key: VICTIM}, nodes)
    ledger.begin_evictions("p", [VICTIM])
    ledger.wait_together(G, ["p"], [VICTIM])
    ledger.end_evictions("p")
    place = nodes.pop(VICTIM.uid)
    nodes[VICTIM.uid] = place
    ledger.forget_victim(VICTIM.uid)
    assert (ledger.awaited_by(G), ledger.is_leaving(VICTIM)) == (False, False)


@pytest.mark.parametrize(
    ("open_nodes", "released"),
    [
        pytest.param({"n1", "n3"}, {}, id="its victims are leaving"),
        pytest.param({"n1"}, {G: False}, id="a node of its places is gone or closed"),
    ],
)
def test_a_group_is_released_without_an_event(
    open_nodes: set[str], released: dict[GroupKey, bool]
) -> None:
    ledger = ledger_of({VICTIM.key: leaving(VICTIM)}, BOTH)
    ledger.wait_together(G, [], [VICTIM], places=["n3", "n1"])
    assert ledger.release_groups(lambda _group, places: open_nodes.issuperset(places)) == released
    assert ledger.awaited_by(G) is not bool(released)


def test_a_group_whose_victim_is_overdue_is_released_without_an_event() -> None:
    clock = ManualClock(start_ns=0)
    ledger = ledger_of({VICTIM.key: leaving(VICTIM)}, BOTH, clock=clock)
    ledger.wait_together(G, [], [VICTIM], places=["n1"])
    clock.advance(41)
    assert ledger.release_groups(lambda _group, _places: True) == {G: False}
