"""Rejections remembered for replicas: what a new attempt would answer, until something changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.config.defaults import default_config
from moorage.config.merge import expand_profiles
from moorage.engine.attempt import Scope
from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision
from moorage.engine.select_node import smallest_name
from moorage.framework.capabilities import Reads
from moorage.framework.handle import Handle
from moorage.framework.points import PostFilterResult
from moorage.framework.profile import Profile
from moorage.framework.status import ReasonTable, unschedulable
from moorage.plugins.in_tree import in_tree_registry
from moorage.snapshot.pod_groups import GroupKey, GroupTerms, PodGroups
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.testing.builders import Manifest, node, pod
from scheduler.tests.framework.builders import Fake, answers, profile

REGISTRY = in_tree_registry()
SPECS = expand_profiles(default_config(), REGISTRY)


def said(decision: Decision) -> tuple[Any, ...]:
    victims = [each.name for each in decision.victims]
    place = (decision.outcome, decision.node_name, decision.nomination, victims)
    return (*place, decision.message, decision.diagnosis, decision.evaluated)


def default_cycle(snapshot: Snapshot, *, reuse: bool) -> Cycle:
    handle = Handle(
        profile_name="default-scheduler",
        snapshot=snapshot,
        reasons=ReasonTable(),
        clock=ManualClock(),
        streams=Streams(1),
    )
    return Cycle(Profile(SPECS[0], REGISTRY, handle), snapshot, smallest_name, reuse=reuse)


ASKED = st.tuples(
    st.sampled_from(["1", "3", "9"]), st.sampled_from([0, 5]), st.sampled_from(["", "Never"])
)
PLACED = st.tuples(st.just("place"), st.integers(0, 2), st.sampled_from([0, 3]))
GONE = st.tuples(st.just("remove"), st.integers(0, 20), st.just(0))


@settings(max_examples=20, deadline=None)
@given(steps=st.lists(ASKED | PLACED | GONE, min_size=4, max_size=10))
def test_rejections_are_the_same_with_and_without_reuse(steps):
    snapshot = Snapshot()
    for index in range(3):
        snapshot.table.add_node(node(f"n{index}", cpu="4", memory="8Gi"))
    with_it, without = (default_cycle(snapshot, reuse=each) for each in (True, False))
    placed: list[str] = []
    for number, (first, second, third) in enumerate(steps):
        if first == "place":
            other = pod(f"r{number}", cpu="2", priority=third)
            snapshot.table.add_pod(other, f"n{second}")
            placed.append(other.uid)
        elif first == "remove":
            if placed:
                snapshot.table.remove_pod(placed.pop(second % len(placed)))
        else:
            policy: Manifest = {"preemptionPolicy": third} if third else {}
            asked = pod(f"p{number}", cpu=first, priority=second, **policy)
            assert said(with_it.decide(PodInfo(asked))) == said(without.decide(PodInfo(asked)))


class ByName:
    """Groups by a label; what they demand is said by the test."""

    def __init__(self) -> None:
        self.minimum = 1

    def key_of(self, each: Any) -> GroupKey | None:
        name = each.metadata.labels.get("group")
        return GroupKey("default", name) if name else None

    def terms_of(self, key: GroupKey) -> GroupTerms:
        return GroupTerms(key=key, minimum=self.minimum)


class World:
    """One full node, and a PostFilter that counts how often it is asked."""

    def __init__(self, answer: PostFilterResult | None = None, *, by_shape: bool = True) -> None:
        self.asked = 0
        self.groups = ByName()
        self.snapshot = Snapshot()
        self.snapshot.table.add_node(node("n"))
        self.snapshot.groups = PodGroups(self.groups)
        self.answer = answer
        full = Fake(
            "Full",
            filter_node=answers(unschedulable("full")),
            filter_reads=Reads.NODE,
            shape_parts=(RESOURCES,),
        )
        counts = Fake("Counts", post_filter=self._post_filter, rejects_by_shape=by_shape)
        made = profile(full, counts, snapshot=self.snapshot)
        self.cycle = Cycle(made, self.snapshot, smallest_name)

    def _post_filter(self, *_: object) -> tuple[PostFilterResult | None, Any]:
        self.asked += 1
        return self.answer, unschedulable("nobody goes")

    def decide(self, name: str, scope: Scope | None = None, **fields: Any) -> None:
        self.cycle.decide(PodInfo(pod(name, cpu="1", **fields)), scope or Scope())


def more_pods(world: World) -> None:
    world.snapshot.table.add_pod(pod("other"), "n")


def nominated(world: World) -> None:
    world.snapshot.nominations = {"n": [PodInfo(pod("other"))]}


def larger_group(world: World) -> None:
    world.groups.minimum = 2


@pytest.mark.parametrize(
    ("between", "fields", "asked"),
    [
        pytest.param(None, {}, 1, id="a replica: no"),
        pytest.param(None, {"labels": {"index": "1"}}, 1, id="a label nobody reads: no"),
        pytest.param(None, {"labels": {"group": "g"}}, 2, id="a member of a group: yes"),
        pytest.param(None, {"priority": 1}, 2, id="another priority: yes"),
        pytest.param(None, {"preemptionPolicy": "Never"}, 2, id="another policy: yes"),
        pytest.param(more_pods, {}, 2, id="a row changed: yes"),
        pytest.param(nominated, {}, 2, id="a pod is nominated: yes"),
        pytest.param(larger_group, {}, 1, id="a group that it does not belong to: no"),
    ],
)
def test_whether_post_filter_runs_again_for_the_next_replica(
    between: Callable[[World], None] | None, fields: dict[str, Any], asked: int
):
    world = World()
    world.decide("a")
    if between is not None:
        between(world)
    world.decide("b", **fields)
    assert world.asked == asked


def test_a_group_that_demands_something_else_is_asked_about_anew():
    world = World()
    for minimum in (1, 1, 2):
        world.groups.minimum = minimum
        world.decide("a", labels={"group": "g"})
    assert world.asked == 2


def test_post_filter_runs_again_after_it_found_a_node():
    world = World(PostFilterResult("n"))
    world.decide("a")
    world.decide("b")
    assert world.asked == 2


def test_a_plugin_that_does_not_promise_it_is_asked_every_time():
    world = World(by_shape=False)
    world.decide("a")
    world.decide("b")
    assert world.asked == 2


def test_an_attempt_that_explains_asks_post_filter_itself():
    world = World()
    for _ in range(2):
        world.decide("a", msgspec.structs.replace(Scope(), explain=True))
    assert world.asked == 2


def test_a_rejection_without_post_filter_is_not_reused_with_it():
    world = World()
    world.decide("a", Scope(post_filter=False))
    world.decide("b")
    assert world.asked == 1
