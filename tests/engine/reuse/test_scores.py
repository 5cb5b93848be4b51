"""The score cache follows few rows plugin by plugin: in scalars where the plugin has the form."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.engine.cycle import Cycle
from moorage.engine.decision import Outcome
from moorage.engine.select_node import smallest_name
from moorage.framework.capabilities import Reads
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES
from moorage.snapshot.snapshot import Snapshot
from tests.engine.builders import told
from tests.framework.builders import Fake, profile
from tests.snapshot.builders import node, pod

NAMES = tuple(f"n{i:02}" for i in range(20))


class Scores:
    """A Score plugin that prefers rows by their number of pods, and notes who asks in arrays."""

    def __init__(
        self, name: str, snapshot: Snapshot, *, step: int, normalizes: bool, scalar: bool
    ) -> None:
        self.asked: list[list[int]] = []
        self._snapshot = snapshot
        self._step = step
        more: dict[str, Any] = {"normalize": self._normalize} if normalizes else {}
        if scalar:
            more["score_row"] = self._score_row
        self.plugin = Fake(
            name,
            score=self._score,
            score_reads=Reads.NODE | Reads.PODS,
            shape_parts=(RESOURCES,),
            **more,
        )

    def _score(self, state: object, info: object, view: Any) -> Any:
        self.asked.append(view.row_numbers().tolist())
        return np.minimum(view.take(self._snapshot.pod_count) * self._step % 101, 100)

    def _score_row(self, state: object, info: object, row: int) -> int | None:
        count = int(self._snapshot.pod_count[row])
        return None if count == 3 else min(count * self._step % 101, 100)

    @staticmethod
    def _normalize(state: object, info: object, raw_n: Any) -> Any:
        return raw_n * 100 // max(int(raw_n.max()), 1)


class World:
    """One cluster, decided about with reuse and without."""

    def __init__(self, forms: list[tuple[bool, bool]]) -> None:
        self.snapshot = Snapshot()
        for name in NAMES:
            self.snapshot.table.add_node(node(name))
        self.scores = [
            Scores(f"S{i}", self.snapshot, step=7 * i + 3, normalizes=normalizes, scalar=scalar)
            for i, (normalizes, scalar) in enumerate(forms)
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


@settings(max_examples=100, deadline=None)
@given(
    st.lists(forms, min_size=1, max_size=4),
    st.lists(st.lists(st.integers(0, 19), max_size=3), max_size=12),
)
def test_reuse_never_changes_a_score_whatever_forms_the_plugins_have(
    plugins: list[tuple[bool, bool]], history: list[list[int]]
) -> None:
    world = World(plugins)
    for rows in history:
        world.compare()
        for row in rows:
            world.place(row)
    world.compare()


def test_a_plugin_in_arrays_keeps_no_other_plugin_on_arrays() -> None:
    """(normalizes, has the scalar form) of each plugin; a pod is placed, then one is decided."""
    world = World([(False, True), (True, False), (True, True), (False, False)])
    asked = PodInfo(pod("asked"))
    world.reusing.decide(asked)
    for each in world.scores:
        each.asked.clear()
    world.place(4)
    world.reusing.decide(asked)
    assert [each.asked for each in world.scores] == [[], [[4]], [], [[4]]]
