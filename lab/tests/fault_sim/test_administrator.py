"""Tools of administrators in a simulation: what a drain, an autoscaler and a reload do."""

from __future__ import annotations

from typing import Any

import pytest

from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.acts import AnyAct, Script
from moorage_lab.fault_sim.fault_run import Outcome, play
from moorage_sandbox.testing.builders import node_manifest, pod_manifest


def played(*doings: AnyAct, **fields: Any) -> Outcome:
    """Return the end of a run on one node, where every invariant has to hold."""
    fields = {"nodes": [node_manifest("n1", cpu="2")], "rest_seconds": 40.0, **fields}
    outcome = play(Script(seed=1, acts=list(doings), **fields))
    assert outcome.breaches == ()
    return outcome


def a_pod(name: str, at: float = 5.0, **fields: Any) -> acts.Create:
    fields = {"cpu": "1", "terminationGracePeriodSeconds": 1, **fields}
    return acts.Create(at=at, object=pod_manifest(name, **fields))


def count(outcome: Outcome, text: str) -> int:
    """Return how many lines of the trace have a text."""
    return sum(text in line for line in outcome.lines)


def test_a_drain_evicts_the_pods_of_the_node() -> None:
    drain = acts.Drain(at=10.0, node="n1", seconds=5.0)
    outcome = played(a_pod("p"), a_pod("q"), drain)
    assert count(outcome, "/eviction -> 201") == 2


def test_a_drain_respects_the_budget_of_a_pod() -> None:
    budget = acts.Create(
        at=4.0,
        object={
            "apiVersion": "policy/v1",
            "kind": "PodDisruptionBudget",
            "metadata": {"name": "b", "namespace": "default"},
            "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
        },
    )
    drain = acts.Drain(at=10.0, node="n1", seconds=3.0)
    outcome = played(budget, a_pod("p", labels={"app": "web"}), drain)
    assert count(outcome, "/eviction -> 201") == 0
    assert count(outcome, "/eviction -> 429") == 3


@pytest.mark.parametrize("away", [False, True])
def test_a_node_that_joins_twice_has_one_agent(away: bool) -> None:
    twice = [acts.Join(at=at, node=node_manifest("more", cpu="4")) for at in (6.0, 9.0)]
    outage = [acts.Outage(at=5.0, seconds=3.0, forgets=False)] * away
    outcome = played(*outage, *twice, a_pod("large", at=12.0, cpu="3"))
    assert outcome.bound == 1
    assert count(outcome, "POST /api/v1/nodes more -> 201") == 1
    assert count(outcome, "POST /api/v1/nodes more -> 409") == 0


def test_the_autoscaler_adds_a_node_for_a_pod_that_waits_and_removes_it_when_empty() -> None:
    scale = acts.Autoscale(at=6.0, seconds=120.0)
    end = acts.Delete(at=60.0, kind="Pod", name="large")
    outcome = played(a_pod("large", cpu="3"), scale, end)
    assert outcome.bound == 1
    assert count(outcome, "DELETE /api/v1/nodes/auto1 -> 200") == 1


def test_a_reload_is_put_in_force_or_refused_and_pods_are_placed_after_each() -> None:
    reloads = [
        acts.Reload(at=6.0 + number, process="scheduler-0", setup=setup)
        for number, setup in enumerate(("scores", "coscheduling"))
    ]
    outcome = played(*reloads, a_pod("p", at=6.5), a_pod("q", at=9.0))
    assert outcome.bound == 2
    assert count(outcome, "refuses the configuration coscheduling") == 1
    assert count(outcome, "refuses the configuration scores") == 0


@pytest.mark.parametrize("killed", [False, True], ids=["stopped", "killed"])
def test_the_nodes_of_agents_that_do_not_run_are_tainted_and_come_back(killed: bool) -> None:
    if killed:
        fault: AnyAct = acts.Kill(at=10.0, process="nodes", signal="KILL", seconds=100.0)
    else:
        fault = acts.Stop(at=10.0, process="nodes", seconds=100.0)
    outcome = played(fault, a_pod("p", at=100.0))
    # The node of the silent agents takes no pod; after their return it does.
    [line] = [each for each in outcome.lines if "/pods/p/binding -> 201" in each]
    assert float(line.split()[0]) > 110.0


@pytest.mark.parametrize("setup", ["extender", "extenders"])
def test_pods_are_placed_behind_extenders_that_misbehave(setup: str) -> None:
    pods = [a_pod(f"p{number}", at=5.0 + number, cpu="100m") for number in range(8)]
    assert played(*pods, setup=setup).bound == 8
