"""A lease that its holder gave up: who waits for it takes it at once, unless something is wrong."""

from __future__ import annotations

import msgspec
import pytest

from moorage.service.process.leader import Elector
from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.acts import AnyAct, Script
from moorage_lab.fault_sim.fault_run import Outcome, play
from moorage_sandbox.testing.builders import node_manifest, pod_manifest

ENDS = 30.0


def handed_over(*meanwhile: AnyAct, on_disk: bool = False) -> Outcome:
    """Return the outcome where the leader of two schedulers ends, while something else happens."""
    ends = acts.Kill(at=ENDS, process=LEADER, signal="TERM", seconds=20.0)
    later = acts.Look(at=ENDS + 5)  # faults end with the last act
    in_order = sorted([*meanwhile, ends, later], key=lambda act: act.at)
    nodes = [node_manifest("n1", cpu="2")]
    script = Script(seed=1, replicas=2, nodes=nodes, acts=in_order, rest_seconds=40.0)
    return play(msgspec.structs.replace(script, on_disk=on_disk))


LEADER, WAITS = "scheduler-1", "scheduler-0"


def breach_names(outcome: Outcome) -> list[str]:
    return [each.invariant for each in outcome.breaches]


@pytest.fixture(name="deaf")
def _deaf(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a scheduler that waits hear nothing of the lease between its looks."""
    monkeypatch.setattr(Elector, "_observe_lease", lambda self, lease: None)


def test_a_lease_that_is_given_up_is_taken_at_once() -> None:
    assert breach_names(handed_over()) == []


def test_a_leader_that_still_ends_may_write_when_its_successor_has_begun() -> None:
    pods = [
        acts.Create(
            at=ENDS - 0.2 + 0.01 * number,
            object=pod_manifest(f"p{number}", cpu="10m", schedulerName="default-scheduler"),
        )
        for number in range(20)
    ]
    ends = acts.Kill(at=ENDS, process=LEADER, signal="TERM", seconds=0.01)
    slow = acts.Disturb(at=ENDS - 0.3, process=LEADER, fault="slow", rate=1.0, seconds=5.0)
    later = acts.Look(at=ENDS + 6)
    script = Script(
        seed=55,  # scheduler-1 leads, and its slow calls still give the lease up
        replicas=2,
        nodes=[node_manifest("n1", cpu="2")],
        acts=sorted([slow, *pods, ends, later], key=lambda act: act.at),
        rest_seconds=40.0,
    )
    assert breach_names(play(script)) == []


@pytest.mark.usefixtures("deaf")
def test_a_scheduler_that_does_not_hear_that_the_lease_is_free_is_told() -> None:
    outcome = handed_over()
    assert breach_names(outcome) == ["lease-passed-on"]
    assert f"{WAITS}.1 waits for the lease" in outcome.breaches[0].text


@pytest.mark.usefixtures("deaf")
@pytest.mark.parametrize(
    "meanwhile",
    [
        pytest.param(acts.Stop(at=ENDS - 1, process=WAITS, seconds=5.0), id="it is stopped"),
        pytest.param(acts.Stop(at=ENDS + 0.1, process=WAITS, seconds=5.0), id="it is stopped then"),
        pytest.param(acts.Stop(at=ENDS - 9, process=WAITS, seconds=1.0), id="it was stopped"),
        pytest.param(
            acts.Disturb(at=ENDS - 1, process=WAITS, fault="slow", rate=1.0, seconds=5.0),
            id="its messages are slow",
        ),
        pytest.param(
            acts.Disturb(at=ENDS - 3, process=WAITS, fault="slow", rate=1.0, seconds=2.0),
            id="its messages were slow",
        ),
        pytest.param(
            acts.Disturb(at=ENDS - 1, process=WAITS, fault="watch-silent", rate=1.0, seconds=5.0),
            id="its watch is silent",
        ),
        pytest.param(
            acts.Kill(at=ENDS - 3, process=WAITS, signal="KILL", seconds=1.0), id="it was started"
        ),
        pytest.param(
            acts.Kill(at=ENDS + 0.1, process=WAITS, signal="TERM", seconds=1.0), id="it ends too"
        ),
        pytest.param(acts.Outage(at=ENDS - 9, seconds=0.0, forgets=False), id="a cut"),
        pytest.param(acts.Outage(at=ENDS + 0.1, seconds=1.0, forgets=False), id="no server"),
    ],
)
def test_a_scheduler_need_not_hear_of_a_free_lease_while(meanwhile: AnyAct) -> None:
    assert breach_names(handed_over(meanwhile)) == []


@pytest.mark.parametrize("seconds", [-30.0, 30.0])
def test_a_scheduler_whose_clock_jumps_takes_a_free_lease_all_the_same(seconds: float) -> None:
    assert breach_names(handed_over(acts.Jump(at=ENDS - 1, process=WAITS, seconds=seconds))) == []


def test_a_leader_keeps_the_lease_where_it_ends_and_the_server_has_died() -> None:
    dies = acts.Crash(at=ENDS - 4, how="broken", power=False, calls=0, seconds=8.0)
    writes = acts.Create(at=ENDS - 3.9, object=node_manifest("n2", cpu="2"))
    assert breach_names(handed_over(dies, writes, on_disk=True)) == []
