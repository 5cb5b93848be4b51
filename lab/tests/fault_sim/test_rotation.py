"""Nodes that nothing scores: pods alike go to them in turn, unless something else explains it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from lab.tests.fault_sim.pasts import LATER, NEAR, Past, a_pod, binding, history
from moorage.base.clock import NS_PER_SECOND
from moorage_lab.fault_sim.history import Placed
from moorage_lab.fault_sim.invariants.at_writes import broken_by
from moorage_lab.fault_sim.invariants.write_case import WriteCase
from moorage_sandbox.testing.builders import Manifest

HORIZON_NS = 8 * NS_PER_SECOND
JUST_NOW_NS = LATER - HORIZON_NS // 2


def tried(
    past: Past, *, last: Manifest, own: Manifest, undisturbed: bool = True, unscored: bool = True
) -> WriteCase:
    """Return the binding of a pod that was tried right after another one."""
    past.pods["last"], past.placed["last"] = last, Placed(LATER - 2, "scheduler-1.1")
    past.popped_ns |= {"last": LATER - 4, "p": LATER - 3}
    past.tried_after["p"] = "last"
    waited = {**own, "spec": {**own["spec"], "nodeName": ""}}
    case = binding(own, past, before=waited)
    return WriteCase(
        write=case.write,
        history=past,
        horizon_ns=HORIZON_NS,
        undisturbed=undisturbed,
        unscored=unscored,
    )


def pair(node: str, **fields: str) -> tuple[Manifest, Manifest]:
    """Return a pod, and one alike that was tried right before."""
    fields = {"cpu": "500m", **fields}
    return a_pod("last", "n1", **fields), a_pod("p", node, **fields)


def breach_names(case: WriteCase) -> list[str]:
    return [name for name, _ in broken_by(case)]


def test_a_pod_does_not_take_the_node_of_the_pod_before_where_another_node_takes_it() -> None:
    last, own = pair("n1")
    assert breach_names(tried(history(), last=last, own=own)) == ["rotation"]


def test_a_pod_goes_to_the_next_node() -> None:
    last, own = pair("n2")
    assert breach_names(tried(history(), last=last, own=own)) == []


def test_a_pod_takes_the_node_of_the_pod_before_where_no_other_takes_it() -> None:
    last, own = pair("n1", cpu="1")
    past = history(a_pod("full", "n2", cpu="2"))
    assert breach_names(tried(past, last=last, own=own)) == []


def _node_came(past: Past) -> None:
    past.node_changed_ns["n2"] = JUST_NOW_NS


def _pod_went(past: Past) -> None:
    past.pod_gone_ns = JUST_NOW_NS


def _nominated(past: Past) -> None:
    other = a_pod("other")
    other["status"] = {"nominatedNodeName": "n2"}
    past.pods["other"] = other


def _was_nominated(past: Past) -> None:
    past.nominated_ns["p"] = 0


def _under_way(past: Past) -> None:
    past.pods["other"], past.popped_ns["other"] = a_pod("other"), JUST_NOW_NS


def _tried_again(past: Past) -> None:
    past.popped_ns["last"] = LATER - 1


@pytest.mark.parametrize(
    "happens",
    [
        pytest.param(_node_came, id="a node came"),
        pytest.param(_pod_went, id="a pod went"),
        pytest.param(_nominated, id="a node is nominated"),
        pytest.param(_was_nominated, id="the pod was nominated"),
        pytest.param(_under_way, id="a pod is under way"),
        pytest.param(_tried_again, id="the pod before was tried again since"),
    ],
)
def test_a_pod_may_take_the_node_of_the_pod_before_where(happens: Callable[[Past], None]) -> None:
    last, own = pair("n1")
    past = history()
    case = tried(past, last=last, own=own)
    happens(past)
    assert breach_names(case) == []


@pytest.mark.parametrize("scored", [{"unscored": False}, {"undisturbed": False}])
def test_a_pod_may_take_any_node_where_scores_or_faults_decide(scored: dict[str, bool]) -> None:
    last, own = pair("n1")
    assert breach_names(tried(history(), last=last, own=own, **scored)) == []


def test_pods_that_ask_for_different_things_may_take_one_node() -> None:
    last, _ = pair("n1")
    assert breach_names(tried(history(), last=last, own=a_pod("p", "n1", cpu="600m"))) == []


def test_pods_with_affinity_may_take_one_node() -> None:
    past = history(a_pod("db", "n1", labels={"app": "db"}, cpu="100m"))
    last = a_pod("last", "n1", cpu="500m", affinity=NEAR)
    assert (
        breach_names(tried(past, last=last, own=a_pod("p", "n1", cpu="500m", affinity=NEAR))) == []
    )
