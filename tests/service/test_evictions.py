"""The ledger of evictions under way: when a preemptor may enter the queue again."""

from __future__ import annotations

import msgspec

from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND
from moorage.service.evictions import EvictionLedger
from moorage.testing.builders import pod

VICTIM = pod("victim", node_name="n1")


def changed(given: Pod, **metadata: str) -> Pod:
    return msgspec.structs.replace(
        given, metadata=msgspec.structs.replace(given.metadata, **metadata)
    )


def test_only_the_preemptor_is_held_while_its_evictions_run() -> None:
    ledger = EvictionLedger(lambda _namespace, _name: VICTIM, {VICTIM.uid: "n1"}.get)
    assert not ledger.running_for("p")
    ledger.begin("p")
    assert (ledger.running_for("p"), ledger.running_for("q")) == (True, False)
    ledger.only("p", VICTIM)
    assert ledger.running_for("p")
    ledger.end("p")
    assert not ledger.running_for("p")
    ledger.end("p")


def test_the_preemptor_enters_once_its_last_victim_is_terminating_or_gone() -> None:
    shown: dict[tuple[str, str], Pod] = {VICTIM.key: VICTIM}
    nodes = {VICTIM.uid: "n1"}
    ledger = EvictionLedger(lambda namespace, name: shown.get((namespace, name)), nodes.get)
    ledger.begin("p")
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
    ledger = EvictionLedger(lambda _namespace, _name: VICTIM, {VICTIM.uid: "n1"}.get)
    ledger.took(2 * NS_PER_SECOND, done=True)
    ledger.took(NS_PER_SECOND, done=True)
    ledger.took(5 * NS_PER_SECOND, done=False)
    assert {result: (h.count, h.total) for result, h in ledger.durations.items()} == {
        "success": (2, 3.0),
        "error": (1, 5.0),
    }
