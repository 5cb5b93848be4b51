"""An API server on a disk that dies in each of its first writes, and lists that are old."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pytest

from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.acts import Script
from moorage_lab.fault_sim.fault_run import Outcome, play
from moorage_sandbox.storage.journal.journal import Journal
from moorage_sandbox.storage.store import Write
from moorage_sandbox.testing.builders import node_manifest, pod_manifest


def played(*faults: acts.AnyAct) -> Outcome:
    """Play two schedulers and three pods, with some faults."""
    creations: list[acts.AnyAct] = [
        acts.Create(at=5.0 + number, object=pod_manifest(f"p{number}", cpu="1"))
        for number in range(3)
    ]
    return play(
        Script(
            seed=1,
            replicas=2,
            nodes=[node_manifest("n", cpu="4")],
            acts=[*creations, *faults],
            rest_seconds=120.0,
            on_disk=True,
        )
    )


def breach_names(outcome: Outcome) -> list[str]:
    return [f"{each.invariant}: {each.text}" for each in outcome.breaches]


@pytest.mark.parametrize(
    ("how", "calls", "power"),
    [
        ("kill", 0, True),
        ("kill", 12, False),
        ("torn", 1, False),
        ("torn", 4, True),
        ("broken", 0, False),
        ("broken", 4, True),
    ],
)
def test_nothing_acknowledged_is_lost_when_the_server_dies_in_a_write(
    how: Literal["kill", "torn", "broken"], calls: int, power: bool
) -> None:
    outcome = played(acts.Crash(at=4.99, how=how, power=power, calls=calls, seconds=0.5))
    assert breach_names(outcome) == []
    assert [line for line in outcome.lines if "begins anew" in line]
    # A pod whose creation failed is not created again.
    assert outcome.bound >= 2


def test_a_full_disk_refuses_writes_and_takes_them_again() -> None:
    outcome = played(acts.FullDisk(at=4.99, room_bytes=0, seconds=1.5))
    assert breach_names(outcome) == []
    assert [line for line in outcome.lines if "-> 507" in line]
    assert outcome.bound == 1


def test_a_server_that_forgets_an_acknowledged_write_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    commit = Journal.commit

    def forgetful(self: Journal, writes: Sequence[Write]) -> None:
        if other_writes := [each for each in writes if each.resource != "pods"]:
            commit(self, other_writes)

    monkeypatch.setattr(Journal, "commit", forgetful)
    outcome = played(acts.Crash(at=5.1, how="kill", power=False, calls=0, seconds=0.5))
    assert "acknowledged" in {each.invariant for each in outcome.breaches}


def test_a_list_from_an_old_version_delays_what_a_scheduler_knows_and_loses_nothing() -> None:
    outcome = played(
        acts.Disturb(at=4.0, process="scheduler-0", fault="list-stale", rate=1.0, seconds=30.0),
        acts.Outage(at=6.5, seconds=0.0, forgets=True),
        acts.Outage(at=8.5, seconds=0.0, forgets=True),
    )
    assert breach_names(outcome) == []
    assert outcome.fault_counts["list-stale"] > 0
    assert outcome.bound == 3
