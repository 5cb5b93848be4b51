"""Reuse may never change a decision: random clusters, pods and events, the real default profile."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.node import Node
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.config.defaults import default_config
from moorage.config.merge import expand_profiles
from moorage.engine.attempt import CycleError
from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision, Outcome
from moorage.engine.evaluation import Evaluation, evaluate
from moorage.engine.reuse import shapes
from moorage.engine.select_node import smallest_name
from moorage.framework.handle import Handle
from moorage.framework.profile import Profile
from moorage.framework.status import ReasonTable
from moorage.plugins.in_tree import in_tree_registry
from moorage.snapshot.key_log import KeyLog
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.engine.builders import told
from scheduler.tests.plugins.strategies import NODE_NAMES, nodes, pods
from scheduler.tests.snapshot.builders import node, pod, validate

REGISTRY = in_tree_registry()
SPECS = expand_profiles(default_config(), REGISTRY)
SHAPES = ("s0", "s1", "s2")


@pytest.fixture(autouse=True, scope="module", params=[-8, shapes.PASS_ROWS])
def pass_rows(request: pytest.FixtureRequest) -> Iterator[None]:
    """Follow changes as on a large cluster, and as on a small one."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shapes, "PASS_ROWS", request.param)
        yield


def default_profile(snapshot: Snapshot) -> Profile:
    handle = Handle(
        profile_name="default-scheduler",
        snapshot=snapshot,
        reasons=ReasonTable(),
        clock=ManualClock(),
        streams=Streams(1),
    )
    return Profile(SPECS[0], REGISTRY, handle)


def agrees(decision: Decision, evaluation: Evaluation | CycleError) -> None:
    """Hold a decision against what every plugin says by itself."""
    if isinstance(evaluation, CycleError):
        assert (decision.outcome, decision.status) == (Outcome.ERROR, evaluation.status)
        return
    if not evaluation.feasible:
        assert decision.outcome is Outcome.REJECT
        assert decision.diagnosis is not None
        assert decision.diagnosis.with_post_filter("") == evaluation.diagnosis
        return
    assert decision.outcome is Outcome.BIND
    assert decision.feasible == len(evaluation.feasible)
    if decision.feasible == 1:
        assert decision.node_name == evaluation.feasible[0]
        return
    assert decision.node_name == min(evaluation.winners, key=str.encode)
    assert decision.ties == len(evaluation.winners)
    assert evaluation.scores is not None
    assert decision.total_score == evaluation.scores.total_n.max()


def evaluated(profile: Profile, snapshot: Snapshot, info: PodInfo) -> Evaluation | CycleError:
    try:
        return evaluate(profile, snapshot, info)
    except CycleError as broken:
        return broken


def nominated_pods() -> st.SearchStrategy[dict[str, list[str]]]:
    return st.dictionaries(st.sampled_from(NODE_NAMES), st.just(["guest"]), max_size=2)


steps = st.one_of(
    st.sampled_from(NODE_NAMES).flatmap(lambda n: st.tuples(st.just("node"), nodes(n))),
    st.tuples(st.just("node gone"), st.sampled_from(NODE_NAMES)),
    st.tuples(st.just("nominate"), nominated_pods()),
    st.tuples(st.just("pod gone"), st.integers(0, 5)),
    st.tuples(st.just("decide"), st.sampled_from(SHAPES)),
    st.tuples(st.just("decide"), st.sampled_from(SHAPES)),
    st.tuples(st.just("decide"), st.sampled_from(SHAPES)),
)


class World:
    """One cluster, decided about with and without reuse; the chosen node gets the pod."""

    def __init__(
        self, shapes: dict[str, Any], guest: Any, names: Sequence[str] = NODE_NAMES
    ) -> None:
        self.names = names
        self.snapshot = Snapshot()
        self.nominations: dict[str, Sequence[PodInfo]] = {}
        self.log: KeyLog[str] = KeyLog()
        self.snapshot.nominations, self.snapshot.nominations_log = self.nominations, self.log
        self.profile = default_profile(self.snapshot)
        self.reusing = Cycle(self.profile, self.snapshot, smallest_name)
        self.plain = Cycle(self.profile, self.snapshot, smallest_name, reuse=False)
        self.shapes, self.guest = shapes, PodInfo(guest)
        self.placed: list[str] = []
        self.serial = 0

    def apply(self, step: tuple[str, Any]) -> None:
        kind, what = step
        table = self.snapshot.table
        if kind == "node":
            table.add_node(what)
        elif kind == "node gone" and table.has_node(what):
            table.remove_node(what)
        elif kind == "nominate":
            self._nominate(what)
        elif kind == "pod gone" and what < len(self.placed):
            table.remove_pod(self.placed.pop(what))
        elif kind == "decide":
            self._decide(self.shapes[what])
        elif kind == "decide nominated":
            self._decide(self.shapes["s0"], what)
        elif kind == "fill":
            filling = self.replica(self.shapes["s0"])
            table.add_pod(filling, what)
            self.placed.append(filling.uid)

    def _nominate(self, names: Collection[str]) -> None:
        """Nominate the guest to these nodes alone, as a nominator tells of it."""
        for name in self.names:
            if (name in names) != (name in self.nominations):
                self.log.append(name)
                if name in names:
                    self.nominations[name] = [self.guest]
                else:
                    del self.nominations[name]

    def replica(self, shape: Any, nominated: str = "") -> PodInfo:
        """Return a pod of a shape with a name of its own, and perhaps a nomination."""
        self.serial += 1
        uid = f"uid-{self.serial}"
        metadata = type(shape.metadata)(name=uid, namespace="default", uid=uid)
        status = msgspec.structs.replace(shape.status, nominated_node_name=nominated)
        return PodInfo(type(shape)(metadata=metadata, spec=shape.spec, status=status))

    def _decide(self, shape: Any, nominated: str = "") -> None:
        info = self.replica(shape, nominated)
        reused, plain = self.reusing.decide(info), self.plain.decide(info)
        assert told(reused) == told(plain)
        if self.snapshot.num_nodes:
            agrees(plain, evaluated(self.profile, self.snapshot, info))
        if plain.outcome is Outcome.BIND:
            self.snapshot.table.add_pod(info, plain.node_name)
            self.placed.append(info.uid)


@settings(max_examples=80)
@given(
    st.fixed_dictionaries({name: pods(name) for name in SHAPES}),
    pods("guest"),
    st.lists(st.sampled_from(NODE_NAMES).flatmap(nodes), min_size=2, max_size=5),
    st.lists(steps, max_size=25),
)
def test_reuse_never_changes_a_decision(shapes, guest, first, history):
    world = World(shapes, guest)
    for each in first:
        world.snapshot.table.add_node(each)
    for step in history:
        world.apply(step)
    validate(world.snapshot)


@settings(max_examples=40)
@given(pods("s0"), st.lists(st.sampled_from("abc"), min_size=1, max_size=12), st.data())
def test_reuse_over_many_rows_refreshes_few(shape, where, data):
    """Enough nodes that changed rows are refreshed one by one, not by a full pass."""
    world = World({"s0": shape}, shape)
    kinds = [data.draw(nodes("kind")) for _ in range(3)]
    names = [f"m{i:02}" for i in range(40)]

    def put(name: str, kind: Any) -> None:
        metadata = type(kind.metadata)(name=name, labels=kind.metadata.labels)
        world.apply(("node", type(kind)(metadata=metadata, spec=kind.spec, status=kind.status)))

    for i, name in enumerate(names):
        put(name, kinds[i % 3])
    for i, letter in enumerate(where):
        world.apply(("decide", "s0"))
        put(names[(7 * i) % 40], kinds["abc".index(letter)])
        world.apply(("decide", "s0"))
    assert world.reusing.reuse is not None
    assert world.reusing.reuse.shapes.hits >= len(where) - 1


MANY = tuple(f"m{i:02}" for i in range(20))
nominated_steps = st.one_of(
    st.tuples(st.just("decide nominated"), st.sampled_from((*MANY[:4], "gone"))),
    st.tuples(st.just("decide nominated"), st.sampled_from(MANY[:4])),
    st.tuples(st.just("decide"), st.just("s0")),
    st.tuples(st.just("fill"), st.sampled_from(MANY[:4])),
    st.tuples(st.just("pod gone"), st.integers(0, 3)),
    st.tuples(st.just("node"), st.sampled_from(MANY[:4]).map(lambda name: node_with_room(name, 2))),
    st.tuples(
        st.just("nominate"),
        st.dictionaries(st.sampled_from(MANY[:3]), st.just(["guest"]), max_size=2),
    ),
)


def node_with_room(name: str, pods_most: int) -> Node:
    room = {"cpu": "4", "memory": "16Gi", "ephemeral-storage": "10Gi", "pods": str(pods_most)}
    return node(name, allocatable=room)


@settings(max_examples=50)
@given(
    st.just(pod("s0", requests={"cpu": "1"})), pods("guest"), st.lists(nominated_steps, max_size=30)
)
def test_reuse_looks_at_the_nominated_row_first(shape, guest, history):
    """Such an attempt judges that row alone, however far behind the rest of the entry is."""
    world = World({"s0": shape}, guest, names=MANY)
    for name in MANY:
        world.apply(("node", node_with_room(name, 1)))
    world.apply(("decide", "s0"))
    for step in history:
        world.apply(step)
    validate(world.snapshot)
