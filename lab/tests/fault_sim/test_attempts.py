"""The oracle of attempts: dry runs of victims, and mistakes that it finds in whole runs.

Not covered: each rule that it asks, see `test_invariants`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec
import numpy as np
import pytest

from lab.tests.fault_sim.pasts import WEB, a_pod, history
from moorage.api.changes import ClusterEvent
from moorage.api.codec import from_dict
from moorage.api.policy import PodDisruptionBudget
from moorage.base.clock import parse_rfc3339
from moorage.config.plugin_args import LEAST_ALLOCATED
from moorage.engine.cycle import Cycle
from moorage.engine.decision import CLEAR_NOMINATION, Decision
from moorage.plugins.resources import scoring
from moorage.plugins.resources.node_resources_fit import NodeResourcesFit
from moorage.service.intake.ingest import ASSIGNED_POD_DELETE
from moorage.snapshot.listers import Lister
from moorage.snapshot.table import NodeTable
from moorage.state.queue import SchedulingQueue
from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.acts import Script
from moorage_lab.fault_sim.fault_run import play
from moorage_lab.fault_sim.invariants.victims import best_nodes, candidate_on
from moorage_lab.fault_sim.reference.answers import is_current
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest

NOW_NS = parse_rfc3339("2026-01-01T00:01:00Z")


def started(pod: Manifest, second: int) -> Manifest:
    pod["status"] = {"startTime": f"2026-01-01T00:00:0{second}Z"}
    return pod


def room_of(cpus: dict[str, int], room: int) -> Callable[[Iterable[str]], bool]:
    """Return whether one cpu is free once pods are gone."""
    return lambda gone: sum(cpus.values()) - sum(cpus[uid] for uid in gone) + 1 <= room


def budget(allowed: int) -> Manifest:
    return {
        "metadata": {"name": "b", "namespace": "default"},
        "spec": {"selector": {"matchLabels": WEB}},
        "status": {"disruptionsAllowed": allowed},
    }


@pytest.mark.parametrize(
    ("pods", "budgets", "victims", "cost"),
    [
        pytest.param(
            [started(a_pod("a", "n1"), 1), started(a_pod("b", "n1"), 2)],
            [],
            ["default/b"],
            (0, 0, 2**31),
            id="the pod that started later leaves",
        ),
        pytest.param(
            [started(a_pod("a", "n1"), 1), started(a_pod("b", "n1", priority=-5), 0)],
            [],
            ["default/b"],
            (0, -5, 2**31 - 5),
            id="the less important pod leaves",
        ),
        pytest.param(
            [started(a_pod("a", "n1"), 1), started(a_pod("b", "n1", labels=WEB), 2)],
            [budget(0)],
            ["default/a"],
            (0, 0, 2**31),
            id="the pod that a spent budget protects stays",
        ),
        pytest.param(
            [started(a_pod("a", "n1"), 1), started(a_pod("b", "n1", labels=WEB), 2)],
            [budget(1)],
            ["default/b"],
            (0, 0, 2**31),
            id="a budget that allows one eviction protects nobody",
        ),
        pytest.param([a_pod("a", "n1", priority=9)], [], None, None, id="nobody is less important"),
    ],
)
def test_a_dry_run_of_a_node_finds_the_victims(
    pods: list[Manifest],
    budgets: list[Manifest],
    victims: list[str] | None,
    cost: tuple[int, ...] | None,
) -> None:
    past = history(*pods)
    fits = room_of({pod["metadata"]["uid"]: 1 for pod in pods}, len(pods))
    candidate = candidate_on(
        "n1", a_pod("p", priority=9), past, budgets=budgets, leaving=(), now_ns=NOW_NS, fits=fits
    )
    assert (candidate and list(candidate.victims), candidate and candidate.cost) == (victims, cost)


def test_a_pod_that_leaves_anyway_comes_back_last() -> None:
    past = history(started(a_pod("a", "n1"), 1), started(a_pod("b", "n1"), 2))
    victims = {}
    for leaving in ("", "a"):
        candidate = candidate_on(
            "n1",
            a_pod("p", priority=9),
            past,
            budgets=[],
            leaving={leaving},
            now_ns=NOW_NS,
            fits=room_of({"a": 1, "b": 1}, 2),
        )
        assert candidate is not None
        victims[leaving] = candidate.victims
    assert victims == {"": ("default/b",), "a": ("default/a",)}


def test_a_pod_that_leaves_anyway_costs_nothing() -> None:
    """Not even where a spent budget protects it: no eviction is needed."""
    past = history(started(a_pod("a", "n1", labels=WEB), 1), started(a_pod("b", "n2"), 1))
    candidates = {}
    for node, uid in (("n1", "a"), ("n2", "b")):
        candidate = candidate_on(
            node,
            a_pod("p", priority=9),
            past,
            budgets=[budget(0)],
            leaving={"a"},
            now_ns=NOW_NS,
            fits=room_of({uid: 1}, 1),
        )
        assert candidate is not None
        candidates[node] = candidate
    assert candidates["n1"].violations == 0
    assert best_nodes(candidates) == ["n1"]


def test_no_candidate_is_better_than_one_with_lesser_victims() -> None:
    low = history(started(a_pod("a", "n1", priority=-5), 1), started(a_pod("b", "n2"), 1))
    candidates = {}
    for node, uid in (("n1", "a"), ("n2", "b")):
        fits = room_of({uid: 1}, 1)
        candidate = candidate_on(
            node, a_pod("p", priority=9), low, budgets=[], leaving=(), now_ns=NOW_NS, fits=fits
        )
        assert candidate is not None
        candidates[node] = candidate
    assert best_nodes(candidates) == ["n1"]


PRIORITY_CLASS: Manifest = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "high"},
    "value": 100,
}


def allocatable_cpu(at: float, milli: int) -> acts.Patch:
    changes = {"status": {"allocatable": {"cpu": f"{milli}m"}}}
    return acts.Patch(at=at, kind="Node", name="n", changes=changes, subresource="status")


SCRIPT = Script(
    seed=1,
    nodes=[node_manifest("n", cpu="2")],
    acts=[
        acts.Create(at=2.0, object=pod_manifest("small", cpu="1")),
        acts.Create(at=3.0, object=pod_manifest("large", cpu="2")),
        allocatable_cpu(6.0, 3000),
        acts.Create(at=8.0, object=PRIORITY_CLASS),
        acts.Create(at=9.0, object=pod_manifest("urgent", cpu="1", priorityClassName="high")),
        acts.Create(at=15.0, object=pod_manifest("last", cpu="1")),
        acts.Delete(at=20.0, kind="Pod", name="urgent"),
        acts.Create(at=25.0, object=pod_manifest("more", cpu="1", nodeSelector={"x": "y"})),
    ],
    rest_seconds=10.0,
)
"""A pod waits for room on a node, one for an eviction, and one for the end of another pod."""


@pytest.mark.parametrize(
    ("listed", "current"),
    [
        pytest.param(["1"], True, id="the version of the server"),
        pytest.param(["0"], False, id="an older version"),
        pytest.param([], False, id="a new budget that the watch has not told"),
        pytest.param(["1", "1"], False, id="a budget that the server has no more"),
    ],
)
def test_budgets_are_current_in_the_versions_of_the_server(
    listed: list[str], current: bool
) -> None:
    lister: Lister[PodDisruptionBudget] = Lister()
    for number, version in enumerate(listed):
        meta = {"name": f"b{number}", "namespace": "default", "resourceVersion": version}
        lister.put(from_dict(PodDisruptionBudget, {"metadata": meta, "spec": {}}))
    assert is_current(lister, {"b0": {"metadata": {"resourceVersion": "1"}}}) is current


def node_update_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(NodeTable, "update_node", lambda *_: None)


def filter_too_strict(monkeypatch: pytest.MonkeyPatch) -> None:
    left = NodeResourcesFit._left
    monkeypatch.setattr(NodeResourcesFit, "_left", lambda *args: left(*args) - 1)


def deletion_told_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    move = SchedulingQueue.move_all

    def dropped(queue: SchedulingQueue, event: ClusterEvent, *args: Any) -> None:
        if event != ASSIGNED_POD_DELETE:
            move(queue, event, *args)

    monkeypatch.setattr(SchedulingQueue, "move_all", dropped)


def victims_overlooked(monkeypatch: pytest.MonkeyPatch) -> None:
    decide = Cycle.decision_of

    def without(*args: Any) -> Decision:
        return msgspec.structs.replace(decide(*args), victims=(), nomination=CLEAR_NOMINATION)

    monkeypatch.setattr(Cycle, "decision_of", without)


@pytest.mark.parametrize(
    ("mistake", "broken"),
    [
        pytest.param(lambda _: None, set(), id="no mistake"),
        pytest.param(
            node_update_forgotten,
            {"attempt-node", "attempt-wakeup"},
            id="the snapshot keeps an old version of a node",
        ),
        pytest.param(
            filter_too_strict, {"attempt-node", "attempt-wakeup"}, id="a filter compares wrongly"
        ),
        pytest.param(
            deletion_told_to_nobody, {"attempt-wakeup"}, id="the queue hears of no deletion"
        ),
        pytest.param(victims_overlooked, {"attempt-victims"}, id="preemption finds no victims"),
    ],
)
def test_the_oracle_finds_a_mistake(
    monkeypatch: pytest.MonkeyPatch,
    mistake: Callable[[pytest.MonkeyPatch], None],
    broken: set[str],
) -> None:
    mistake(monkeypatch)
    broken_names = {breach.invariant for breach in play(SCRIPT).breaches}
    assert {name for name in broken_names if name.startswith("attempt-")} == broken
    assert bool(broken_names) == bool(broken)


TWO_NODES = Script(
    seed=1,
    nodes=[node_manifest("n1", cpu="4"), node_manifest("n2", cpu="8", labels={"disk": "ssd"})],
    acts=[
        acts.Create(at=2.0, object=pod_manifest("first", cpu="1", labels=WEB)),
        acts.Create(at=3.0, object=pod_manifest("second", cpu="1", labels=WEB)),
        acts.Create(at=4.0, object=pod_manifest("large", cpu="9")),
    ],
    rest_seconds=10.0,
)
"""Two pods have a choice, and one has no room."""


def room_scores_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scoring, "percent_of", lambda part_n, _: np.zeros(len(part_n), np.int64))
    monkeypatch.setitem(scoring.SHARES, LEAST_ALLOCATED, lambda *_: 0)


def decisions_with(**fields: Any) -> Callable[[pytest.MonkeyPatch], None]:
    """Return a mistake that changes the diagnosis of each rejected pod."""

    def mistake(monkeypatch: pytest.MonkeyPatch) -> None:
        decide = Cycle.decision_of

        def changed(*args: Any) -> Decision:
            decision = decide(*args)
            assert decision.diagnosis is not None
            diagnosis = msgspec.structs.replace(decision.diagnosis, **fields)
            return msgspec.structs.replace(decision, diagnosis=diagnosis)

        monkeypatch.setattr(Cycle, "decision_of", changed)

    return mistake


@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        pytest.param(lambda _: None, None, id="no mistake"),
        pytest.param(
            room_scores_nothing, "default/second gets n1; best are n2 of", id="a score is always 0"
        ),
        pytest.param(
            decisions_with(reason_counts={"Insufficient cpu": 1}),
            "default/large: the reasons are {'Insufficient cpu': 1}, "
            "and should be {'Insufficient cpu': 2}",
            id="a reason counts one node of two",
        ),
        pytest.param(
            decisions_with(unschedulable_plugins=frozenset()),
            "default/large: rejected by nobody, and should be by NodeResourcesFit",
            id="a plugin that rejected the pod is not named",
        ),
        pytest.param(
            decisions_with(num_nodes=3),
            "3 nodes are counted, and there are 2",
            id="a node too many",
        ),
    ],
)
def test_totals_and_reasons_are_those_of_the_reference(
    monkeypatch: pytest.MonkeyPatch, mistake: Callable[[pytest.MonkeyPatch], None], text: str | None
) -> None:
    mistake(monkeypatch)
    breaches = play(TWO_NODES).breaches
    assert {each.invariant for each in breaches} == (set() if text is None else {"attempt-answers"})
    assert text is None or text in breaches[0].text


def test_an_assumed_pod_counts_as_it_was_when_it_was_decided() -> None:
    held_pod = pod_manifest(
        "held", cpu="1500m", labels={"delayed-step": "x"}
    )  # Permit holds it for 2 s
    smaller = [{"name": "main", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}]
    script = Script(
        seed=1,
        setup="delayed step",
        nodes=[node_manifest("n", cpu="2")],
        acts=[
            acts.Create(at=2.0, object=held_pod),
            acts.Patch(
                at=3.0,
                kind="Pod",
                name="held",
                changes={"spec": {"containers": smaller}},
                subresource="resize",
            ),
            acts.Create(at=3.2, object=pod_manifest("other", cpu="100m")),
        ],
        rest_seconds=10.0,
    )
    outcome = play(script)
    assert [(each.invariant, each.text) for each in outcome.breaches] == []
    assert any("held/resize -> 200" in line for line in outcome.lines)
    assert outcome.bound == 1


def test_a_pod_may_sleep_until_the_end_of_a_nomination_is_announced() -> None:
    """A preemptor gives its nomination up, and the update of its status wakes the smaller pod."""
    victim = pod_manifest("victim", cpu="2", annotations={"moorage.dev/stop-seconds": "12"})
    script = Script(
        seed=1,
        nodes=[node_manifest("n", cpu="2")],
        acts=[
            acts.Create(at=1.0, object=PRIORITY_CLASS),
            acts.Create(at=2.0, object=victim),
            acts.Create(at=4.0, object=pod_manifest("large", cpu="2", priorityClassName="high")),
            *(allocatable_cpu(at, milli) for at, milli in ((6.0, 2100), (8.0, 2200), (12.0, 2300))),
            acts.Create(at=13.0, object=pod_manifest("small", cpu="1")),
            allocatable_cpu(14.0, 1000),
        ],
        rest_seconds=30.0,
    )
    outcome = play(script)
    assert [(each.invariant, each.text) for each in outcome.breaches] == []
    assert any("pods/small/binding -> 201" in line for line in outcome.lines)
