"""The plan and the result of the soak, and one short soak with real processes.

What the load brings about is tested in ``tests/scenarios/test_several_schedulers.py``.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from moorage.cli.main import main
from moorage_lab.bench.soak.plan import FOREIGN, SchedulerEnd, SoakPlan, SoakReport

FINE = SoakReport(
    settled=True,
    seconds=61.2,
    nodes=10,
    pods=20,
    created=25,
    bound=24,
    running=19,
    explained=1,
    unexplained=0,
    refused={"OutOfcpu": 2, "OutOfpods": 1},
    evacuated=2,
    replaced=5,
    node_departures=3,
    foreign_conflicts=4,
    bound_twice=(),
    overcommitted=(),
    schedulers=(
        SchedulerEnd(name="a", conflicts=7, agrees=True),
        SchedulerEnd(name="b", conflicts=8, agrees=True),
    ),
)


def test_a_report_tells_every_count() -> None:
    assert FINE.as_lines() == [
        "in the end          20 pods on 10 nodes, after 61 s",
        "pods                19 running, 1 with a reported reason, 0 unexplained",
        "created, bound      25, 24; 0 bound twice",
        "refused by kubelets 2 OutOfcpu, 1 OutOfpods",
        "nodes that left     3, with 2 pods",
        "replaced            5",
        "conflicts           7 a, 8 b; 4 foreign",
        "nodes too full      0",
        "caches that agree   2 of 2",
    ]
    assert FINE.faults == FINE.as_json()["faults"] == []


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        pytest.param(
            {"bound_twice": ("default/p u1: n1, then n2",)},
            "bound twice: default/p u1: n1, then n2",
            id="a pod on two nodes",
        ),
        pytest.param({"overcommitted": ("n1",)}, "too much is on node n1", id="too full a node"),
        pytest.param(
            {"unexplained": 3}, "3 pods neither run nor were told why", id="a pod that is stuck"
        ),
        pytest.param({"settled": False}, "it did not come to hold still", id="no end"),
        pytest.param(
            {"schedulers": (SchedulerEnd(name="a", conflicts=0, agrees=False),)},
            "the cache of a differs from the server",
            id="a belief that is wrong",
        ),
    ],
)
def test_each_fault_is_reported(changes: dict[str, Any], fault: str) -> None:
    report = msgspec.structs.replace(FINE, **changes)
    assert report.faults == [fault]
    assert report.as_lines()[-1] == f"FAULT: {fault}"


def test_pods_fit_their_nodes_but_not_loosely_and_some_never_do() -> None:
    plan = SoakPlan()
    slots = range(plan.pods)
    shares = Counter(plan.scheduler_of(slot) for slot in slots)
    assert shares == {"soak-one": 4050, "soak-two": 5000, FOREIGN: 950}
    possible = [slot for slot in slots if not plan.is_impossible(slot)]
    assert len(possible) == 9950
    wanted = sum(plan.cpu_milli_of(slot) for slot in possible)
    assert 0.8 < wanted / (plan.nodes * plan.node_cpu * 1000) < 0.9


@pytest.mark.slow
def test_processes_settle_and_the_command_ends_with_0() -> None:
    arguments = ["bench", "soak", "--nodes", "10", "--pods", "20", "--rate", "40", "-o", "json"]
    done = CliRunner().invoke(main, arguments)
    report = json.loads(done.stdout)
    assert report["faults"] == []
    assert done.exit_code == 0
    assert (report["pods"], report["nodes"]) == (20, 10)
    assert [each["agrees"] for each in report["schedulers"]] == [True, True]
    assert report["node_departures"] > 0
