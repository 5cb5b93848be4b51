"""Scores of all rows from kept columns equal those of single rows, which keep nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.framework.cycle_state import CycleState
from moorage.plugins.resources import derived_column
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.engine.reuse.test_answers import default_profile
from scheduler.tests.snapshot.builders import node, pod

PLUGINS = ("NodeResourcesFit", "NodeResourcesBalancedAllocation")
NAMES = tuple(f"n{i}" for i in range(7))
amounts = st.fixed_dictionaries(
    {"cpu": st.sampled_from(["0", "1", "2500m"]), "memory": st.sampled_from(["0", "1Gi", "3Gi"])},
    optional={"ephemeral-storage": st.just("1Gi")},
)
names = st.sampled_from(NAMES)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("place"), names, amounts),
        st.tuples(st.just("place"), names, amounts),
        st.tuples(st.just("take away"), names, st.none()),
        st.tuples(st.just("node"), names, st.sampled_from(["4", "8", "0"])),
        st.tuples(st.just("node gone"), names, st.none()),
        st.tuples(st.just("try"), names, amounts),
        st.tuples(st.just("score"), st.none(), amounts),
        st.tuples(st.just("score"), st.none(), amounts),
    ),
    max_size=25,
)


class World:
    """A cluster that changes, and the plugins that score it."""

    def __init__(self) -> None:
        self.snapshot = Snapshot()
        for name in NAMES:
            self.snapshot.table.add_node(node(name, cpu="4", memory="8Gi"))
        profile = default_profile(self.snapshot)
        self.plugins: list[Any] = [profile.plugins[name] for name in PLUGINS]
        self.serial = 0

    def pod(self, requests: dict[str, str]) -> PodInfo:
        self.serial += 1
        return PodInfo(pod(f"p{self.serial}", requests=requests))

    def apply(self, what: str, name: Any, more: Any) -> None:
        table = self.snapshot.table
        if what == "score":
            self.compare(more)
        elif what == "node":
            table.add_node(node(name, cpu=more, memory="8Gi"))
        elif not table.has_node(name):
            return
        elif what == "place":
            table.add_pod(self.pod(more), name)
        elif what == "take away":
            for uid in list(table.pods_by_row[table.row_of(name) or 0])[:1]:
                table.remove_pod(uid)
        elif what == "node gone" and len(table.names) > 3:
            table.remove_node(name)
        elif what == "try":
            with self.snapshot.trial() as trial:
                trial.add_pod(self.pod(more), table.row_of(name) or 0)
                self.compare(more)

    def compare(self, requests: dict[str, str]) -> None:
        info, state, snapshot = self.pod(requests), CycleState(), self.snapshot
        for plugin in self.plugins:
            scores = plugin.score(state, info, snapshot.all()).tolist()
            views = [snapshot.rows(np.array([row])) for row in range(snapshot.num_nodes)]
            assert scores == [plugin.score(state, info, view).item(0) for view in views]


@settings(max_examples=150, deadline=None)
@given(steps, st.sampled_from([0, derived_column._SHARE]))
def test_scores_from_kept_columns_equal_those_of_single_rows(
    history: list[tuple[str, Any, Any]], share: int
) -> None:
    """Also where changes are followed: with a share of 0, however many they are."""
    world, before = World(), derived_column._SHARE
    try:
        derived_column._SHARE = share  # type: ignore[misc]
        for step in history:
            world.apply(*step)
        world.compare({"cpu": "1", "memory": "1Gi"})
    finally:
        derived_column._SHARE = before  # type: ignore[misc]
