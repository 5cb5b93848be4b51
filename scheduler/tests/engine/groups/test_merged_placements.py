"""Placements of several PlacementGenerate plugins: intersected in 1.37, the first counts in 1.36.

The cases of the table are those of kubernetes v1.37 ``framework_placement_merge_test.go``; states
that plugins keep for a placement have no counterpart here.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from moorage.config.gate_table import V1_36, V1_37
from moorage.engine.groups.decision import GroupOutcome
from moorage.engine.groups.placements import Placements
from moorage.framework.group import Placement
from moorage.framework.status import SUCCESS, Status
from moorage.snapshot.group_sources import API_SOURCE
from moorage.snapshot.pod_groups import GroupKey, GroupTerms
from moorage.snapshot.snapshot import Snapshot
from moorage_sandbox.testing.builders import node
from scheduler.tests.engine.groups.topology import Group, places

EVERYWHERE: dict[str, str | None] = {"": None}


class Generator:
    """Returns made-up placements: nodes by name; None stands for every node."""

    def __init__(self, name: str, nodes_by_name: dict[str, str | None], snapshot: Snapshot) -> None:
        self.name = name
        self._nodes_by_name = nodes_by_name
        self._snapshot = snapshot

    def generate_placements(
        self, key: GroupKey, terms: GroupTerms | None
    ) -> tuple[Sequence[Placement], Status]:
        del key, terms
        rows = self._snapshot.table.rows_of
        return [
            Placement(name, None if nodes is None else self._snapshot.rows(rows(nodes.split())))
            for name, nodes in self._nodes_by_name.items()
        ], SUCCESS


def group_with(*generators: dict[str, str | None], version: str = V1_37) -> Group:
    """Return a group of two pods of 1 cpu on four nodes of 1 cpu, with these generators."""
    snapshot = Snapshot()
    for name in ("n1", "n2", "n3", "n4"):
        snapshot.table.add_node(node(name, cpu="1"))
    group = Group(snapshot, API_SOURCE, [1, 1], version=version)
    group.cycle.profile.points["placementGenerate"] = tuple(
        Generator(letter, nodes, snapshot) for letter, nodes in zip("abc", generators, strict=False)
    )
    return group


def generated(group: Group) -> dict[str, str] | str:
    """Return the nodes of each placement, or the text of an error."""
    placements, status, _ = Placements(group.cycle).generated(group.key)
    if not status.ok:
        return status.message
    names = group.snapshot.names
    return {
        each.name: "every node"
        if each.within is None
        else " ".join(sorted(names[row] for row in each.within.row_numbers().tolist()))
        for each in placements
    }


@pytest.mark.parametrize(
    ("generators", "expected"),
    [
        pytest.param(
            [{"a": "n1 n2 n3"}, {"b": "n2 n3 n4"}],
            {"a/b": "n2 n3"},
            id="two single-placement plugins intersect",
        ),
        pytest.param(
            [{"a1": "n1 n2", "a2": "n3 n4"}, {"b1": "n2 n3"}],
            {"a1/b1": "n2", "a2/b1": "n3"},
            id="cross product drops empty intersections",
        ),
        pytest.param([{"a": "n1"}, {"b": "n2"}], {}, id="no overlap"),
        pytest.param(
            [EVERYWHERE, {"b": "n2 n3"}], {"b": "n2 n3"}, id="unconstrained plugin is skipped"
        ),
        pytest.param(
            [EVERYWHERE, EVERYWHERE], {"": "every node"}, id="all unconstrained returns every node"
        ),
        pytest.param(
            [{"dup": "n1 n2"}, {"dup": "n2 n3"}],
            'plugins "a" and "b" both returned placement "dup"',
            id="duplicate placement names across plugins is an error",
        ),
        pytest.param(
            [{"a": "n1 n2"}, {"": "n2 n3"}],
            'plugin "b" returned a placement without a name or without bounds',
            id="constrained placement without a name is an error",
        ),
        pytest.param(
            [{"a/b": "n1 n2"}, {"b": "n2 n3"}],
            'plugin "a" returned placement "a/b": a name with "/" cannot be joined with those of '
            "other plugins",
            id="placement name containing the separator is an error",
        ),
        pytest.param(
            [{"a": "n1 n2 n3"}, {"b": "n2 n3 n4"}, {"c": "n3"}],
            {"a/b/c": "n3"},
            id="three plugins",
        ),
    ],
)
def test_placements_of_several_plugins_in_1_37(
    generators: list[dict[str, str | None]], expected: dict[str, str] | str
) -> None:
    assert generated(group_with(*generators)) == expected


def test_the_first_plugin_that_confines_the_group_counts_in_1_36() -> None:
    group = group_with(EVERYWHERE, {"a": "n1 n2"}, {"b": "n2 n3"}, version=V1_36)
    assert generated(group) == {"a": "n1 n2"}


def test_a_group_goes_to_nodes_that_both_plugins_name() -> None:
    decision = group_with({"a1": "n1 n2", "a2": "n3 n4"}, {"b1": "n3 n4 n1"}).decide()
    assert decision.outcome is GroupOutcome.PLACED
    assert (decision.placement, sorted(places(decision).values())) == ("a2/b1", ["n3", "n4"])


def test_a_group_without_common_nodes_is_rejected() -> None:
    decision = group_with({"a": "n1 n2"}, {"b": "n3 n4"}).decide()
    assert decision.outcome is GroupOutcome.REJECTED
    assert "no feasible placements found" in decision.status.message
