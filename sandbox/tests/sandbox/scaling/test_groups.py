"""Bounds, groups of nodes by shape and zone, and nodes that are idle."""

from __future__ import annotations

import pytest

from moorage.base.clock import NS_PER_SECOND
from moorage.base.errors import UsageError
from moorage_sandbox.sandbox.scaling.groups import Bounds, groups_of, idle_seconds_of, parse_bounds
from moorage_sandbox.sandbox.scaling.idle import IdleNodes


@pytest.mark.parametrize(
    ("text", "bounds"),
    [
        pytest.param("3:20", Bounds(3, 20), id="from three to twenty"),
        pytest.param("0:1", Bounds(0, 1), id="an empty cluster at times"),
        pytest.param("5:5", Bounds(5, 5), id="always five"),
    ],
)
def test_bounds(text: str, bounds: Bounds) -> None:
    assert parse_bounds(text) == bounds


@pytest.mark.parametrize("text", ["", "3", "5:4", "a:b", "-1:3", "0:0", "1:20001"])
def test_other_texts_are_no_bounds(text: str) -> None:
    with pytest.raises(UsageError, match=f"^{text}: write MIN:MAX, such as 3:20"):
        parse_bounds(text)


def test_idle_times() -> None:
    assert [idle_seconds_of(text) for text in ("60s", "1m30s", "0s", "45")] == [60, 90, 0, 45]
    for text in ("", "soon", "-1s"):
        with pytest.raises(UsageError):
            idle_seconds_of(text)


def test_groups_are_shapes_by_zone_the_smallest_first() -> None:
    found = groups_of(["g4dn.xlarge", "cpu=16", "cpu=4,count=3", "cpu=2,memory=1Ti"])
    names = [group.name for group in found if group.zone == "a"]
    assert names == ["cpu=2,memory=1Ti/a", "cpu=4/a", "cpu=16/a", "g4dn.xlarge/a"]
    assert [group.name for group in groups_of([])] == ["default/a", "default/b", "default/c"]
    one = groups_of(["label:topology.kubernetes.io/zone=b"])
    assert [group.zone for group in one] == ["b"]


def test_nodes_are_due_when_they_were_empty_for_long_enough() -> None:
    idle = IdleNodes(10)
    moments = [
        (0, {"a", "b"}, []),
        (9, {"a", "b"}, []),
        (10, {"a"}, ["a"]),
        (11, {"a", "b"}, ["a"]),
        (20, {"a", "b"}, ["a"]),
        (21, {"a", "b"}, ["a", "b"]),
    ]
    for second, empty, due in moments:
        assert idle.due(empty, second * NS_PER_SECOND) == due
