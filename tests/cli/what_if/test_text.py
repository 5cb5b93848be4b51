"""The text of ``moorage what-if``: alike pods are one row; wide has every pod; nothing wraps."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.cli.rows.text import Shown
from moorage.cli.what_if.text import report
from moorage.what_if.consequences import (
    ChangeComparison,
    End,
    Loss,
    Move,
    NotEvicted,
    Start,
    Waiting,
)
from moorage.what_if.fullness import Use, UseChange

WHY = "0/9 nodes are available: 9 Insufficient cpu. " + "preemption: none of them helps. " * 3
WEB = "deployment/web"


def course(**fields: Any) -> ChangeComparison:
    names = ("anyway", "starts", "moves", "lost", "newly_pending", "still_pending", "ended")
    every: dict[str, Any] = {**dict.fromkeys(names, ()), "is_quiet": True, **fields}
    return ChangeComparison(**every)


def lines(found: ChangeComparison, shown: Shown | None) -> list[str]:
    return report(found, "", worse=(), shown=shown).splitlines()


WAITING = course(
    still_pending=(
        *(Waiting(f"default/w{n}", WHY, "pending", owner=WEB) for n in range(30)),
        Waiting("default/solo", "", "pending"),
    )
)


def test_pods_of_one_owner_with_one_reason_are_one_row() -> None:
    assert lines(WAITING, Shown()) == [
        "Wait as before (31):",
        "  PODS  OWNER                   REASON",
        "    30  default/deployment/web  InsufficientCPU",
        "        0/9 nodes are available: 9 Insufficient cpu. preemption: none of them h…",
        "     1  default/pod/solo        NotTriedYet",
        "",
        "Nothing gets worse.",
    ]


def test_members_of_a_group_that_waits_as_one_have_its_reason() -> None:
    failed = "pod group is unschedulable: 1 of 2 pods tried have a place, default/m2 has none"
    found = course(
        newly_pending=(Waiting("default/m1", failed, "default/m0 on n1", group="default/g"),),
        still_pending=(
            Waiting("default/m2", WHY, "pending", group="default/g"),
            Waiting("default/m3", failed, "pending", group="default/g"),
        ),
    )
    rows = [line.split()[-1] for line in lines(found, Shown()) if "pod/m" in line]
    assert rows == ["GroupUnschedulable", "GroupUnschedulable"]
    assert "     2  default/pod/m2, …  GroupUnschedulable" in lines(found, Shown())


@pytest.mark.parametrize(
    ("other", "said"),
    [
        pytest.param({}, False, id="the only node"),
        pytest.param({"lost": (Loss("default/b", "n1"),)}, False, id="a loss of the same node"),
        pytest.param({"lost": (Loss("default/b", "n2"),)}, True, id="a loss of another node"),
        pytest.param(
            {"moves": (Move("default/b", "n2", "default/c", "n3"),)}, True, id="a move from another"
        ),
        pytest.param(
            {"moves": (Move("default/b", "n2", "default/c", "n3", evicted_by="default/d"),)},
            False,
            id="an eviction from another node",
        ),
        pytest.param(
            {"newly_pending": (Waiting("default/b", WHY, "default/b on n2"),)},
            True,
            id="a pod of another node that waits",
        ),
        pytest.param(
            {"newly_pending": (Waiting("default/b", WHY, "new"),)},
            False,
            id="a pod that waits and had no node",
        ),
    ],
)
def test_several_drains_of_which_one_waits_are_said_to_be_apart(
    other: dict[str, Any], said: bool
) -> None:
    stuck = NotEvicted("default/a", "n1", "the disruption budget web needs 1 healthy pod and has 1")
    text = " ".join(" ".join(lines(course(not_evicted=(stuck,), **other), Shown())).split())
    assert ("One kubectl drain of several nodes drains them in turn" in text) is said


def test_no_more_rows_than_were_asked_for() -> None:
    assert lines(WAITING, Shown("none", limit=2))[4:7] == [
        "     1  default/pod/w1  InsufficientCPU",
        "        0/9 nodes are available: 9 Insufficient cpu. preemption: none of them h…",
        "  29 more rows with 29 pods are not shown; --limit shows more",
    ]


def test_wide_has_every_pod_with_all_that_is_known() -> None:
    found = lines(WAITING, None)
    assert len(found) == 1 + 1 + 31 + 2
    assert (
        " ".join(found[2].split())
        == f"default/w0 <none> {WEB} <none> InsufficientCPU {WHY}".strip()
    )


def test_every_fate_has_a_section() -> None:
    found = course(
        starts=(Start("default/a", "n1", owner=WEB), Start("default/b", "n2", owner=WEB)),
        moves=(
            Move("default/c", "n1", "default/c2", "n2", owner=WEB),
            Move("default/d", "n1", "default/d2", "n2", "default/urgent", owner=WEB),
        ),
        lost=(Loss("default/e", "n1"), Loss("default/f", "n1", unknown_owner="X y", owner="x/y")),
        newly_pending=(Waiting("default/g2", WHY, "default/g on n1", owner=WEB),),
        ended=(End("default/h", WEB), End("default/i", WEB)),
    )
    titles = [line for line in lines(found, Shown()) if line.endswith("):")]
    assert titles == [
        "Start (2):",
        "Move (1):",
        "Are evicted (1):",
        "Are lost, for they have no owner (1):",
        "May be lost, for nobody knows whether their owner makes others (1):",
        "End (2):",
        "Have no node any more, or none at first (1):",
    ]
    assert "     2  default/deployment/web  n1…" in lines(found, Shown())
    assert "     1  default/deployment/web  n1   InsufficientCPU" in lines(found, Shown())


def test_nodes_that_change_alike_are_one_row_and_nothing_wraps() -> None:
    use = Use(9, {"cpu": 8, "memory": 2**34}, {"cpu": 8, "memory": 2**35, "nvidia.com/gpu": 8})
    nodes = tuple(UseChange(f"node-{n}", None, use) for n in range(300))
    found = lines(course(nodes=nodes, starts=(Start("default/" + "a" * 200, "n" * 99),)), Shown())
    assert [line.split()[:3] for line in found if "node-0" in line] == [["300", "node-0,", "…"]]
    assert max(map(len, found)) <= 80
