"""What is reused: which rows are asked again, who is always asked, how much memory it may take."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.engine.cycle import Cycle
from moorage.engine.select_node import smallest_name
from moorage.framework.capabilities import Reads
from moorage.framework.points import PreFilterResult
from moorage.framework.status import SKIP, SUCCESS, Code, Status, unresolvable, unschedulable
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import LABELS
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.engine.builders import scorer, summary
from scheduler.tests.framework.builders import Fake, answers, profile
from scheduler.tests.snapshot.builders import node, pod

NAMES = [f"n{i:02}" for i in range(20)]


class World:
    """Twenty nodes and a filter and a score that note whom they are asked about."""

    def __init__(self, reads: Reads, *, budget_bytes: int = 2**20, **more: Any) -> None:
        self.snapshot = Snapshot()
        for name in NAMES:
            self.snapshot.table.add_node(node(name))
        self.asked: dict[str, list[str]] = {"filter": [], "score": []}
        self.plugin = Fake(
            "A",
            filter_node=self._filter,
            score_node=self._score,
            filter_reads=reads,
            score_reads=reads,
            shape_parts=(LABELS,),
            **more,
        )
        self.cycle = Cycle(
            profile(self.plugin, snapshot=self.snapshot),
            self.snapshot,
            smallest_name,
            budget_bytes=budget_bytes,
        )
        assert self.cycle.reuse is not None
        self.shapes = self.cycle.reuse.shapes

    def _filter(self, state: Any, info: PodInfo, row: Any) -> Status:
        self.asked["filter"].append(row.name)
        fits = row.pod_count == 0 and not row.node.spec.unschedulable
        return SUCCESS if fits else unschedulable("no")

    def _score(self, state: Any, info: PodInfo, row: Any) -> int:
        self.asked["score"].append(row.name)
        return 1 + int(row.pod_count)

    def decide(self, **labels: str) -> tuple[list[str], list[str]]:
        """Decide about a pod; return who was asked by Filter and by Score."""
        self.asked["filter"].clear()
        self.asked["score"].clear()
        decision = self.cycle.decide(PodInfo(pod("p", labels=labels)))
        self.chosen = summary(decision)
        return self.asked["filter"][:], self.asked["score"][:]


def test_a_replica_asks_no_plugin():
    world = World(Reads.NODE | Reads.PODS)
    assert world.decide() == (NAMES, NAMES)
    assert world.decide() == ([], [])
    assert (world.shapes.hits, world.shapes.misses) == (1, 1)
    assert world.decide(another="shape") == (NAMES, NAMES)
    assert world.decide() == ([], [])


@pytest.mark.parametrize(
    ("reads", "after_pod", "after_node"),
    [
        pytest.param(Reads.NODE, [], ["n07"], id="reads the node"),
        pytest.param(Reads.PODS, ["n03"], ["n07"], id="reads the pods"),
        pytest.param(Reads.NODE | Reads.PODS, ["n03"], ["n07"], id="reads both"),
        pytest.param(Reads.CLUSTER, NAMES, NAMES, id="reads the cluster"),
    ],
)
def test_only_rows_that_moved_are_asked_again(reads, after_pod, after_node):
    world = World(reads)
    world.decide()
    world.snapshot.table.add_pod(pod("other"), "n03")
    filtered, _ = world.decide()
    assert filtered == after_pod
    world.snapshot.table.update_node(node("n07", unschedulable=True))
    filtered, _ = world.decide()
    assert filtered == after_node


def test_changed_rows_change_the_decision():
    world = World(Reads.NODE | Reads.PODS)
    for name in NAMES:
        world.decide()
        assert world.chosen == ("bind", name, "")
        world.snapshot.table.add_pod(pod(f"on-{name}"), name)
    world.decide()
    assert world.chosen == ("reject", "", "0/20 nodes are available: 20 no.")
    world.snapshot.table.remove_pod("uid-on-n11")
    world.decide()
    assert world.chosen == ("bind", "n11", "")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda table: table.add_node(node("new")), id="a node comes"),
        pytest.param(lambda table: table.remove_node("n05"), id="a node goes"),
        pytest.param(
            lambda table: [table.update_node(node(name)) for name in NAMES[:10]],
            id="many rows move at once",
        ),
    ],
)
def test_after_great_changes_every_row_is_asked_again(change):
    world = World(Reads.NODE | Reads.PODS)
    world.decide()
    change(world.snapshot.table)
    filtered, scored = world.decide()
    assert sorted(filtered) == sorted(scored) == sorted(world.snapshot.names)


def test_a_plugin_s_epoch_ends_what_is_kept():
    epochs = iter([1, 1, 2, 2])
    world = World(Reads.NODE, epoch=lambda snapshot: next(epochs))
    assert [len(world.decide()[0]) for _ in range(4)] == [20, 0, 20, 0]


def test_scores_that_stop_being_alike_are_weighed_node_by_node():
    def raw(info: Any, asked: PodInfo) -> int:
        return 3 if info.pod_count else 7

    snapshot = Snapshot()
    for name in NAMES:
        snapshot.table.add_node(node(name))
    plugin = scorer("S", raw, Reads.PODS, normalize=lambda state, asked, raw_n: raw_n + 1)
    cycle = Cycle(profile(plugin, snapshot=snapshot), snapshot, smallest_name)

    def decide() -> tuple[str, int | None, int]:
        decision = cycle.decide(PodInfo(pod("p")))
        return decision.node_name, decision.total_score, decision.ties

    assert decide() == ("n00", 8, 20)
    assert decide() == ("n00", 8, 20)
    snapshot.table.add_pod(pod("q"), "n00")
    assert decide() == ("n01", 8, 19)
    snapshot.table.remove_pod("uid-q")
    assert decide() == ("n00", 8, 20)


def test_rows_touched_by_a_trial_are_asked_again():
    world = World(Reads.PODS)
    world.decide()
    with world.snapshot.trial() as trial:
        trial.add_pod(PodInfo(pod("guest")), 4)
    assert world.decide() == (["n04"], ["n04"])


def test_a_prefilter_is_asked_once_for_each_shape():
    asked: list[str] = []

    def pre_filter(state: Any, info: PodInfo, snapshot: Snapshot) -> Any:
        asked.append(info.pod.metadata.labels.get("own", ""))
        return None, SUCCESS

    world = World(Reads.NODE, pre_filter=pre_filter)
    for label in ("x", "x", "y", "x"):
        world.decide(own=label)
    assert asked == ["x", "y"]


def test_memory_stays_within_its_budget_and_the_least_recent_go():
    world = World(Reads.NODE, budget_bytes=50_000)
    for i in range(100):
        world.decide(own=str(i))
        world.decide(own="0")
        assert world.shapes.nbytes <= 50_000
    kept = world.shapes._shapes
    assert 2 <= len(kept) < 10
    assert world.shapes.nbytes == sum(shape.nbytes + shape.shared.nbytes for shape in kept.values())
    assert world.decide(own="0") == ([], [])
    assert world.decide(own="1") == (NAMES, NAMES)


def test_one_shape_is_kept_however_small_the_budget():
    world = World(Reads.NODE, budget_bytes=1)
    world.decide()
    assert world.decide() == ([], [])


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param((None, unresolvable("never")), id="PreFilter rejects"),
        pytest.param((PreFilterResult(frozenset({"n01"})), SUCCESS), id="PreFilter restricts"),
    ],
)
def test_shapes_that_never_come_to_all_rows_do_not_pile_up(answer):
    world = World(Reads.NODE, budget_bytes=50_000, pre_filter=answers(answer))
    for i in range(100):
        world.decide(own=str(i))
    assert len(world.shapes) < 10
    assert world.shapes.nbytes <= 50_000


def test_parts_of_a_kept_shape_live_on_without_its_pods():
    world = World(Reads.NODE)
    world.decide(own="1")
    world.decide(own="2")
    assert world.decide(own="1") == ([], [])


SAID: dict[str, tuple[PreFilterResult | None, Status]] = {
    "skips": (None, SKIP),
    "lets go on": (None, SUCCESS),
    "restricts": (PreFilterResult(frozenset({"n04", "n11"})), SUCCESS),
    "rejects": (None, unschedulable("no")),
    "rejects for good": (None, unresolvable("never")),
}


@given(
    said=st.lists(st.tuples(*[st.sampled_from(sorted(SAID))] * 2)),
    kept=st.sampled_from(["skips", "lets go on", "restricts"]),
    knows=st.sets(st.sampled_from("AC")),
)
@settings(max_examples=80)
def test_pre_filter_is_the_same_whichever_plugins_answers_are_kept(said, kept, knows):
    """Two plugins are asked afresh for each pod, the one between them for the first.

    Some know beforehand as long as what they skip; one skips whatever happens, and says so.
    """
    snapshot = Snapshot()
    for name in NAMES:
        snapshot.table.add_node(node(name))
    now = dict.fromkeys("AC", "skips")

    def fresh(name: str) -> Fake:
        asked = lambda state, info, snapshot: SAID[now[name]]  # noqa: E731
        known: dict[str, Any] = {}
        if name in knows:
            known["skips_spec"] = answers(lambda snapshot: now[name] == "skips")
        return Fake(name, pre_filter=asked, filter_node=answers(SUCCESS), **known)

    between = Fake(
        "B",
        pre_filter=answers(SAID[kept]),
        filter_node=answers(unschedulable("B was not skipped")),
        filter_reads=Reads.NODE,
        shape_parts=(),
    )
    skipping = Fake(
        "D",
        pre_filter=answers((None, SKIP)),
        skips_spec=answers(True),
        filter_node=answers(unschedulable("D was not skipped")),
    )
    plugins = profile(fresh("A"), between, fresh("C"), skipping, snapshot=snapshot)
    reusing = Cycle(plugins, snapshot, smallest_name)
    plain = Cycle(plugins, snapshot, smallest_name, reuse=False)
    for now["A"], now["C"] in said:
        found, expected = (each.decide(PodInfo(pod("p"))) for each in (reusing, plain))
        assert summary(found) == summary(expected)
        assert found.state.skip_filter == expected.state.skip_filter
        assert found.diagnosis == expected.diagnosis


class Sampling:
    """A meter that samples the attempts it is told to."""

    def __init__(self, *sampled: bool) -> None:
        self._sampled = iter(sampled)
        self.took_by = Counter[tuple[str, str, str]]()

    def sample(self) -> bool:
        return next(self._sampled)

    def start(self) -> None:
        pass

    def lap(self, point: str, code: Code) -> None:
        pass

    def meter_ns(self) -> int:
        return 0

    def called(self, plugin: str, point: str) -> None:
        pass

    def took(self, plugin: str, point: str, code: Code, *, since_ns: int) -> None:
        self.took_by[plugin, point, code.text] += 1


@pytest.mark.parametrize(
    ("skips", "sampled", "asked"),
    [
        pytest.param({}, [False] * 3, 3, id="a plugin that says nothing is asked each time"),
        pytest.param(
            {"skips_spec": answers(True)},
            [False] * 3,
            0,
            id="one that knows the pod is not asked",
        ),
        pytest.param(
            {"skips_spec": answers(True)}, [False, True, True], 2, id="a sampled attempt asks all"
        ),
        pytest.param(
            {"skips_spec": answers(False)},
            [False] * 3,
            3,
            id="one that does not know the pod is asked each time",
        ),
        pytest.param(
            {"skips_spec": answers(answers(False))},
            [False] * 3,
            3,
            id="one whose condition does not hold is asked each time",
        ),
        pytest.param(
            {"skips_spec": answers(RuntimeError("broken"))},
            [False] * 3,
            3,
            id="one that breaks when it should know is asked each time",
        ),
    ],
)
def test_plugins_that_declare_skips_are_not_asked_for_pre_filter(skips, sampled, asked):
    calls = []

    def pre_filter(state: Any, info: PodInfo, snapshot: Snapshot) -> Any:
        calls.append(info.name)
        return None, SKIP

    snapshot = Snapshot()
    snapshot.table.add_node(node("n1"))
    plugin = Fake("A", pre_filter=pre_filter, filter_node=answers(SUCCESS), **skips)
    meter = Sampling(*sampled)
    plugins = profile(plugin, snapshot=snapshot)
    cycle = Cycle(plugins, snapshot, smallest_name, meter=meter)
    for _ in sampled:
        decision = cycle.decide(PodInfo(pod("p")))
        assert summary(decision) == ("bind", "n1", "")
        assert decision.state.skip_filter == {"A"}
    assert len(calls) == asked
    assert meter.took_by["A", "PreFilter", "Skip"] == sum(sampled)
