"""The score cache follows few rows plugin by plugin: in scalars where the plugin has the form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.engine.cycle import Cycle
from moorage.engine.decision import Outcome
from moorage.engine.select_node import smallest_name
from moorage.framework.capabilities import Reads
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.table import NodeTable
from scheduler.tests.engine.builders import told
from scheduler.tests.framework.builders import Fake, profile
from scheduler.tests.snapshot.builders import node, pod

NAMES = tuple(f"n{i:02}" for i in range(20))


Form = tuple[bool, bool]
"""Whether a plugin normalizes, and has a scalar form."""


class Scores:
    """A Score plugin that prefers rows by their number of pods, and notes who asks in arrays."""

    def __init__(self, name: str, snapshot: Snapshot, *, step: int, form: Form) -> None:
        normalizes, scalar = form
        self.asked: list[list[int]] = []
        self.bound = 0
        self._snapshot = snapshot
        self._step = step
        more: dict[str, Any] = {"normalize": self._normalize} if normalizes else {}
        if scalar:
            more["row_scorer"] = self._bound
        self.plugin = Fake(
            name,
            score=self._score,
            score_reads=Reads.NODE | Reads.PODS,
            shape_parts=(RESOURCES,),
            **more,
        )

    def _score(self, state: object, info: object, view: Any) -> Any:
        self.asked.append(view.row_numbers().tolist())
        return np.minimum(view.take_rows(self._snapshot.pod_count) * self._step % 101, 100)

    def _score_row(self, row: int) -> int | None:
        count = int(self._snapshot.pod_count[row])
        return None if count == 3 else min(count * self._step % 101, 100)

    def _bound(self, state: object, info: object) -> Any:
        self.bound += 1
        return self._score_row

    @staticmethod
    def _normalize(state: object, info: object, raw_n: Any) -> Any:
        return raw_n * 100 // max(int(raw_n.max()), 1)


class World:
    """One cluster, decided about with reuse and without."""

    def __init__(self, forms: list[Form]) -> None:
        self.snapshot = Snapshot()
        for name in NAMES:
            self.snapshot.table.add_node(node(name))
        self.scores = [
            Scores(f"S{i}", self.snapshot, step=7 * i + 3, form=form)
            for i, form in enumerate(forms)
        ]
        made = profile(*(each.plugin for each in self.scores), snapshot=self.snapshot)
        self.reusing = Cycle(made, self.snapshot, smallest_name)
        self.plain = Cycle(made, self.snapshot, smallest_name, reuse=False)
        self.serial = 0

    def place(self, row: int) -> None:
        self.serial += 1
        self.snapshot.table.add_pod(pod(f"p{self.serial}"), NAMES[row])

    def compare(self) -> None:
        asked = PodInfo(pod("asked"))
        reused, plain = self.reusing.decide(asked), self.plain.decide(asked)
        assert plain.outcome is Outcome.BIND
        assert told(reused) == told(plain)


forms = st.tuples(st.booleans(), st.booleans())


@settings(max_examples=50, deadline=None)
@given(
    st.lists(forms, min_size=1, max_size=4),
    st.lists(st.lists(st.integers(0, 19), max_size=3), max_size=12),
)
def test_reuse_never_changes_a_score_whatever_forms_the_plugins_have(
    plugins: list[Form], history: list[list[int]]
) -> None:
    world = World(plugins)
    for rows in history:
        world.compare()
        for row in rows:
            world.place(row)
    world.compare()


def test_a_plugin_in_arrays_keeps_no_other_plugin_on_arrays() -> None:
    """A pod is placed, then one is decided."""
    yes, no = True, False
    world = World([(no, yes), (yes, no), (yes, yes), (no, no)])
    asked = PodInfo(pod("asked"))
    world.reusing.decide(asked)
    for each in world.scores:
        each.asked.clear()
    world.place(4)
    world.reusing.decide(asked)
    assert [each.asked for each in world.scores] == [[], [[4]], [], [[4]]]


@pytest.mark.parametrize(
    ("change", "bound"),
    [
        pytest.param(lambda table: None, 1, id="nothing"),
        pytest.param(lambda table: table.update_node(node(NAMES[9])), 2, id="a node"),
        pytest.param(lambda table: table.columns.ensure(("requested", "a.b/c")), 2, id="columns"),
        pytest.param(lambda table: table.add_node(node("n99")), 2, id="the number of nodes"),
    ],
)
def test_what_scores_a_row_is_bound_again_after_a_change_of(
    change: Callable[[NodeTable], object], bound: int
) -> None:
    world = World([(False, True)])
    asked = PodInfo(pod("asked"))
    world.reusing.decide(asked)
    for row, step in ((4, lambda table: None), (5, change), (6, lambda table: None)):
        step(world.snapshot.table)
        world.reusing.decide(asked)
        world.place(row)
        world.compare()
    assert world.scores[0].bound == bound
