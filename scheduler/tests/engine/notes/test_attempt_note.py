"""Notes of attempts agree with what every plugin says by itself, with and without reuse.

The random clusters, pods and events of ``scheduler/tests/engine/reuse/test_answers``. Not covered:
how long notes are kept (``scheduler/tests/observe/records``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.engine.cycle import Cycle
from moorage.engine.decision import Decision, Outcome
from moorage.engine.evaluation import Evaluation
from moorage.engine.notes.attempt_note import AttemptNote, NoteWriter
from moorage.engine.notes.best_nodes import BEST_MAX, NearTop
from moorage.engine.reuse import scores
from moorage.engine.select_node import smallest_name
from moorage.snapshot.pod_info import PodInfo
from scheduler.tests.engine.reuse.test_answers import (
    SHAPES,
    World,
    default_profile,
    evaluated,
    node_with_room,
    steps,
)
from scheduler.tests.plugins.strategies import NODE_NAMES, nodes, pods
from scheduler.tests.snapshot.builders import cluster, node, pod


def note_of(decision: Decision) -> AttemptNote:
    assert decision.note is not None
    return decision.note


def noting(world: World, *, reuse: bool) -> Cycle:
    notes = NoteWriter(world.profile, world.snapshot)
    return Cycle(world.profile, world.snapshot, smallest_name, reuse=reuse, notes=notes)


def agrees(note: AttemptNote, decision: Decision, found: Evaluation) -> None:
    """Hold a note against what every plugin says by itself."""
    looked_at = note.looked_at
    if looked_at is not None and not found.nominated_shortcut:
        rejected = {name: key for key, names in looked_at.rejections().items() for name in names}
        assert rejected == {
            name: (status.plugin, status.code.text, status.reasons)
            for name, status in found.filter.items()
        }
        assert sorted(looked_at.passed(), key=str.encode) == list(found.feasible)
    if decision.feasible < 2:
        assert note.best is None
        return
    ranking = note.ranking
    assert ranking is not None
    assert found.scores is not None
    totals = dict(zip(found.feasible, found.scores.total_n.tolist(), strict=True))
    assert ranking.nodes[0] == decision.node_name
    assert len(set(ranking.nodes)) == len(ranking.nodes) == min(BEST_MAX, len(totals))
    assert list(ranking.totals) == [totals[name] for name in ranking.nodes]
    assert sorted(ranking.totals) == sorted(totals.values())[-len(ranking.totals) :]
    assert list(ranking.totals) == sorted(ranking.totals, reverse=True)
    at = [found.feasible.index(name) for name in ranking.nodes]
    assert {each.plugin: each for each in ranking.plugins}.keys() == found.scores.plugins.keys()
    for each in ranking.plugins:
        own = found.scores.plugins[each.plugin]
        assert each.weight == own.weight
        assert list(each.raw) == own.raw_n[at].tolist()
        assert list(each.normalized) == own.normalized_n[at].tolist()


class NotedWorld(World):
    """Decides with notes as well, and holds all notes against the plugins at the end, too."""

    def __init__(
        self, shapes: dict[str, Any], guest: Any, names: Sequence[str] = NODE_NAMES
    ) -> None:
        super().__init__(shapes, guest, names)
        self.reusing, self.plain = noting(self, reuse=True), noting(self, reuse=False)
        self.held: list[tuple[AttemptNote, Any, Any]] = []

    def _decide(self, shape: Any, nominated: str = "") -> None:
        replica = self.replica(shape, nominated)
        if not self.snapshot.num_nodes:
            return
        found = evaluated(self.profile, self.snapshot, replica)
        silent = Cycle(self.profile, self.snapshot, smallest_name).decide(replica)
        chosen = ""
        for cycle in (self.plain, self.reusing):
            decision = cycle.decide(replica)
            assert decision.node_name == silent.node_name
            if isinstance(found, Evaluation) and decision.outcome is not Outcome.ERROR:
                note = note_of(decision)
                agrees(note, decision, found)
                self._draws_as_told(note, found)
                self.held.append((note, told(note), decision))
                chosen = decision.node_name
        if chosen:
            self.snapshot.table.add_pod(replica, chosen)
            self.placed.append(replica.uid)

    def _draws_as_told(self, note: AttemptNote, found: Evaluation) -> None:
        ranking = note.ranking
        if ranking is None or found.scores is None:
            return
        totals = found.scores.total_n.tolist()
        rows = {name: self.snapshot.row_of(name) or 0 for name in found.feasible}
        tied = [n for n, total in zip(found.feasible, totals, strict=True) if total == max(totals)]
        assert sorted(tied, key=rows.__getitem__).index(ranking.nodes[0]) == ranking.drawn

    def still_the_same(self) -> None:
        """Later attempts and changes of rows change no note."""
        for note, before, _ in self.held:
            assert told(note) == before


def told(note: AttemptNote) -> Any:
    looked_at = note.looked_at
    return note.ranking, None if looked_at is None else (looked_at.rejections(), looked_at.passed())


@settings(max_examples=60)
@given(
    st.fixed_dictionaries({name: pods(name) for name in SHAPES}),
    pods("guest"),
    st.lists(st.sampled_from(NODE_NAMES).flatmap(nodes), min_size=2, max_size=5),
    st.lists(steps, max_size=25),
)
def test_notes_agree_with_every_plugin_and_do_not_change_later(shapes, guest, first, history):
    world = NotedWorld(shapes, guest)
    for each in first:
        world.snapshot.table.add_node(each)
    for step in history:
        world.apply(step)
    world.still_the_same()


_SPREAD = {
    "maxSkew": 1,
    "topologyKey": "zone",
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "x"}},
}
_AWAY = {
    "weight": 7,
    "podAffinityTerm": {
        "topologyKey": "zone",
        "labelSelector": {"matchLabels": {"app": "x"}},
    },
}
_TOGETHER = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_AWAY]}}


@pytest.mark.parametrize(
    ("fields", "changes_max", "logged"),
    [
        pytest.param({}, 7, True, id="all scores are cached, and logs are short"),
        pytest.param({}, 1024, True, id="all scores are cached, in one log"),
        pytest.param(
            {"topologySpreadConstraints": [_SPREAD]}, 7, True, id="some Filters are asked afresh"
        ),
        pytest.param({"affinity": _TOGETHER}, 7, False, id="some scores are asked afresh"),
    ],
)
@settings(max_examples=12, deadline=None)
@given(filled=st.lists(st.integers(0, 39), min_size=20, max_size=60))
def test_notes_of_many_rows_do_not_change_when_few_rows_do(fields, changes_max, logged, filled):
    """Enough nodes that changed rows are judged one by one, and enough pods for a log of scores."""
    shape = pod("s0", requests={"cpu": "1"}, labels={"app": "x"}, **fields)
    world = NotedWorld({"s0": shape}, shape, [f"m{i:02}" for i in range(40)])
    for index, name in enumerate(world.names):
        room = {"cpu": "4", "memory": "16Gi", "pods": "2"}
        labels = {"zone": f"z{index % 3}"} if index % 5 else {}
        world.apply(("node", node(name, labels=labels, allocatable=room)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scores, "CHANGES_MAX", changes_max)
        for row in filled:
            world.apply(("fill", f"m{row:02}"))
            world.apply(("decide", "s0"))
    world.still_the_same()
    best = [note.best for note, _, _ in world.held if note.best is not None]
    if logged:
        assert any(each.near is None for each in best)
    else:
        assert any(each.near is not None and each.near.opened for each in best)
    if "topologySpreadConstraints" in fields:
        more = [each for note, _, _ in world.held for each in note.more]
        assert more
        assert all(one is other for one in more for other in more if one == other), "kept once"


@pytest.mark.parametrize("count", [2, 9, 10, 11, 40, 1000])
def test_the_ten_best_of_many_nodes_are_noted_whatever_the_totals(count: int) -> None:
    rng = np.random.default_rng(count)
    near = NearTop()
    for spread in (1, 3, 50, 10_000, 2, 1):
        total_n = rng.integers(0, spread, count)
        top = int(total_n.max())
        best, tied = near.find(total_n, top)
        assert tied.tolist() == np.flatnonzero(total_n == top).tolist()
        assert sorted(total_n[best])[-10:] == sorted(total_n)[-min(10, count) :]
        assert (np.diff(best) > 0).all()


def test_notes_between_two_changes_share_their_filter_results() -> None:
    snapshot = cluster(*(node_with_room(f"n{i}", 9) for i in range(30)))
    profile = default_profile(snapshot)
    notes = NoteWriter(profile, snapshot)
    cycle = Cycle(profile, snapshot, smallest_name, notes=notes)
    found = []
    for index in range(6):
        replica = PodInfo(pod(f"p{index}", requests={"cpu": "1"}))
        decision = cycle.decide(replica)
        shape = note_of(decision).shape
        assert shape is not None
        found.append(shape)
        snapshot.table.add_pod(replica, decision.node_name)
    assert found[0] is found[1]
    assert found[4] is found[5], "and the log of scores, which begins with the fourth"
    assert found[0].filtered is found[5].filtered
    assert found[5].log is not None


def test_rejections_by_the_same_domains_are_packed_once() -> None:
    """Of three zones a few sets are too full, again and again."""
    room = {"cpu": "4", "memory": "16Gi", "pods": "99"}
    zones = [{"zone": f"z{i % 3}"} for i in range(6)]
    snapshot = cluster(
        *(node(f"n{i}", labels=labels, allocatable=room) for i, labels in enumerate(zones))
    )
    profile = default_profile(snapshot)
    notes = NoteWriter(profile, snapshot)
    cycle = Cycle(profile, snapshot, smallest_name, notes=notes)
    packed: dict[tuple[str, ...], set[int]] = {}
    held = []
    for index in range(24):
        spread = {"topologySpreadConstraints": [_SPREAD]}
        replica = PodInfo(pod(f"p{index}", labels={"app": "x"}, **spread))
        decision = cycle.decide(replica)
        note = note_of(decision)
        looked_at = note.looked_at
        assert looked_at is not None
        held.append(note)
        packed.setdefault(tuple(looked_at.passed()), set()).add(id(note.more))
        snapshot.table.add_pod(replica, decision.node_name)
    assert {passed: len(ids) for passed, ids in packed.items()} == dict.fromkeys(packed, 1)
    assert len(packed) == 3, "all zones, two of them, one"
