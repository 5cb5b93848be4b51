"""PreemptionToleration: who is spared, and when; against the rule on random clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from moorage.api.codec import from_dict
from moorage.api.meta import Condition
from moorage.api.pod import Pod
from moorage.api.policy import PriorityClass
from moorage.base.clock import NS_PER_SECOND, ManualClock, rfc3339
from moorage.base.errors import ConfigError
from moorage.base.rng import Streams
from moorage.config.plugin_args_optional import PreemptionTolerationArgs
from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision
from moorage.engine.evaluation import evaluate
from moorage.engine.select_node import smallest_name
from moorage.framework.handle import Handle
from moorage.framework.preemption import NoEvictions
from moorage.framework.status import ReasonTable
from moorage.plugins.preemption.evaluator import EVICTING
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.testing.builders import node, pod
from scheduler.tests.plugins.builders import SUMS, make, without
from scheduler.tests.plugins.quotas.builders import profile_with

CLOCK = ManualClock()
NOW = CLOCK.now_ns()
DOMAIN = "preemption-toleration.scheduling.x-k8s.io"
OLD_DOMAIN = "preemption-toleration.scheduling.sigs.k8s.io"
SPARED = "1 No victims found on node n0 for preemptor pod preemptor."


def priority_class(name: str, value: int, annotations: Mapping[str, str]) -> PriorityClass:
    metadata = {"name": name, "annotations": dict(annotations)}
    return from_dict(PriorityClass, {"metadata": metadata, "value": value})


def tolerating(least: object = None, seconds: object = None, *, domain: str = DOMAIN):
    """Return annotations; None leaves one out."""
    given = {"minimum-preemptable-priority": least, "toleration-seconds": seconds}
    return {f"{domain}/{key}": str(each) for key, each in given.items() if each is not None}


def resident(
    name: str, priority: int, class_name: str, *, age: float | None, cpu: str = "4"
) -> Pod:
    """Return a pod scheduled so many seconds ago; None for one that is not yet."""
    made = pod(name, cpu=cpu, priority=priority, priorityClassName=class_name)
    conditions = []
    if age is not None:
        at = rfc3339(NOW - int(age * NS_PER_SECOND))
        conditions = [Condition(type="PodScheduled", status="True", last_transition_time=at)]
    status = msgspec.structs.replace(made.status, conditions=conditions)
    return msgspec.structs.replace(made, status=status)


def preemptor(priority: int, **fields: Any) -> Pod:
    return pod("preemptor", cpu="4", priority=priority, **fields)


def cluster(*residents: Pod, classes: Mapping[str, PriorityClass] | None = None) -> Snapshot:
    """Return a cluster of one node for each pod."""
    snapshot = Snapshot()
    for i, each in enumerate(residents):
        snapshot.table.add_node(node(f"n{i}", cpu="4"))
        snapshot.table.add_pod(each, f"n{i}")
    for made in (classes or {}).values():
        snapshot.listers.priority_classes.put(made)
    return snapshot


def profile_of(snapshot: Snapshot):
    handle = Handle(
        profile_name="default-scheduler",
        snapshot=snapshot,
        reasons=ReasonTable(),
        clock=CLOCK,
        streams=Streams(1),
    )
    return profile_with("PreemptionToleration", handle)


def decide(snapshot: Snapshot, asking: Pod) -> Decision:
    return Cycle(profile_of(snapshot), snapshot, smallest_name).decide(PodInfo(asking))


@pytest.mark.parametrize(
    ("annotations", "priority", "age", "evicted"),
    [
        pytest.param({}, 6, 9.0, True, id="without annotations any higher priority evicts"),
        pytest.param(tolerating(10), 9, 9.0, True, id="zero seconds spare nobody for long"),
        pytest.param(tolerating(10, 60), 10, 9.0, True, id="the least priority evicts at once"),
        pytest.param(tolerating(10, 60), 9, 59.0, False, id="one below it waits"),
        pytest.param(tolerating(10, 60), 9, 60.0, True, id="as long as the class says"),
        pytest.param(tolerating(10, -1), 9, 1e6, False, id="and for ever if that is negative"),
        pytest.param(tolerating(10), 9, None, False, id="a pod not scheduled yet is spared"),
        pytest.param(tolerating(None, 60), 6, 1.0, True, id="time alone spares nobody"),
        pytest.param(
            tolerating("ten", -1),
            6,
            1.0,
            True,
            id="an annotation without a number is no toleration",
        ),
        pytest.param(tolerating(2**31, -1), 6, 1.0, True, id="nor what is too large"),
        pytest.param(tolerating(10, "1e3"), 9, 1.0, True, id="nor seconds that are no number"),
        pytest.param(
            tolerating(10, 60, domain=OLD_DOMAIN), 9, 9.0, False, id="the older names are read"
        ),
    ],
)
def test_exempt_pods_per_toleration(
    annotations: dict[str, str],
    priority: int,
    age: float | None,
    *,
    evicted: bool,
):
    classes = {"batch": priority_class("batch", 5, annotations)}
    snapshot = cluster(resident("r", 5, "batch", age=age), classes=classes)
    decision = decide(snapshot, preemptor(priority))
    if evicted:
        assert [each.name for each in decision.victims] == ["r"]
    else:
        assert decision.victims == ()
        assert decision.message.endswith(
            f"no new claims to deallocate, 0/1 nodes are available: {SPARED}"
        )


def test_a_missing_priority_class_is_an_error():
    snapshot = cluster(resident("r", 5, "gone", age=1.0))
    decision = decide(snapshot, preemptor(9))
    assert decision.victims == ()
    assert 'priorityclass.scheduling.k8s.io "gone" not found' in decision.message


def test_a_changed_class_counts_at_once():
    classes = {"batch": priority_class("batch", 5, tolerating(10, -1))}
    snapshot = cluster(resident("r", 5, "batch", age=1.0), classes=classes)
    profile = profile_of(snapshot)
    cycle = Cycle(profile, snapshot, smallest_name)
    assert cycle.decide(PodInfo(preemptor(9))).victims == ()
    snapshot.listers.priority_classes.put(priority_class("batch", 5, {}))
    assert [each.name for each in cycle.decide(PodInfo(preemptor(9))).victims] == ["r"]


def test_preemption_policy_never_prevents_preemption():
    decision = decide(
        cluster(resident("r", 5, "", age=1.0)), preemptor(9, preemptionPolicy="Never")
    )
    assert decision.message.endswith("not eligible due to preemptionPolicy=Never.")


@pytest.mark.parametrize("leaving", [True, False])
def test_any_terminating_pod_of_lower_priority_makes_room(leaving: bool):
    residents = [resident("r", 5, "", age=1.0), resident("s", 5, "", age=1.0)]
    if leaving:
        metadata = msgspec.structs.replace(
            residents[0].metadata, deletion_timestamp="2026-01-01T00:00:00Z"
        )
        residents[0] = msgspec.structs.replace(residents[0], metadata=metadata)
    asking = preemptor(9)
    status = msgspec.structs.replace(asking.status, nominated_node_name="n0")
    decision = decide(cluster(*residents), msgspec.structs.replace(asking, status=status))
    waits = "not eligible due to a terminating pod on the nominated node." in decision.message
    assert (waits, bool(decision.victims)) == (leaving, not leaving)


class Evicting(NoEvictions):
    """Evictions are under way for everybody."""

    def running_for(self, uid: str) -> bool:
        return bool(uid)


@pytest.mark.parametrize("name", ["PreemptionToleration", "CapacityScheduling"])
def test_pre_enqueue_rejects_a_preemptor_while_its_victims_are_evicted(name: str):
    snapshot = Snapshot()
    handle = Handle(
        profile_name="default-scheduler",
        snapshot=snapshot,
        reasons=ReasonTable(),
        clock=CLOCK,
        streams=Streams(1),
        evictions=Evicting(),
    )
    plugin: Any = profile_with(name, handle).plugins[name]
    assert plugin.pre_enqueue(pod("p")).message == EVICTING
    assert make(name, snapshot)[0].pre_enqueue(pod("p")).ok


def test_arguments_that_try_no_node_are_invalid():
    args = PreemptionTolerationArgs(
        min_candidate_nodes_percentage=0, min_candidate_nodes_absolute=0
    )
    with pytest.raises(ConfigError):
        make("PreemptionToleration", args=args)


# -- against the rule ------------------------------------------------------------------------------

CLASSES = {
    "plain": (3, {}),
    "spared": (2, tolerating(4, -1)),
    "a-while": (1, tolerating(5, 30)),
    "no-number": (1, tolerating(5, "x")),
    "grown": (6, {}),  # of pods that had their priority before the class was made anew
}


def spared(class_name: str, age: float | None, priority: int) -> bool:
    """The rule of the spec, for a pod of lower priority."""
    if class_name in ("", "no-number"):
        return False
    value, notes = CLASSES[class_name]
    least = int(notes.get(f"{DOMAIN}/minimum-preemptable-priority", value + 1))
    seconds = int(notes.get(f"{DOMAIN}/toleration-seconds", 0))
    return priority < least and (seconds < 0 or age is None or age < seconds)


residents = st.tuples(
    st.integers(0, 4),
    st.sampled_from(["", *CLASSES]),
    st.sampled_from([None, 10.0, 50.0]),
    st.sampled_from(["1", "2"]),
)


@pytest.mark.parametrize("together", [True, False])
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    nodes=st.lists(st.lists(residents, min_size=1, max_size=3), min_size=1, max_size=4),
    priority=st.integers(1, 5),
)
def test_candidates_are_nodes_without_exempt_victims(together: bool, nodes, priority: int):
    """The pod needs a whole node, so on each node everybody has to go, or it is no candidate."""
    snapshot = Snapshot()
    for name, (value, notes) in CLASSES.items():
        snapshot.listers.priority_classes.put(priority_class(name, value, notes))
    expected: dict[str, set[str]] = {}
    for i, pods in enumerate(nodes):
        snapshot.table.add_node(node(f"n{i}", cpu="4"))
        for j, (value, class_name, age, cpu) in enumerate(pods):
            made = resident(f"r{i}-{j}", value, class_name, age=age, cpu=cpu)
            snapshot.table.add_pod(made, f"n{i}")
        if all(each[0] < priority and not spared(each[1], each[2], priority) for each in pods):
            expected[f"n{i}"] = {f"r{i}-{j}" for j in range(len(pods))}
    with without("NodeResourcesFit", *(() if together else SUMS)):
        found = evaluate(profile_of(snapshot), snapshot, PodInfo(preemptor(priority)))
    assert found.preemption is not None
    got = {
        each.node_name: {victim.name for victim in each.victims}
        for each in found.preemption.candidates
    }
    event("some" if expected else "none")
    assert got == expected
