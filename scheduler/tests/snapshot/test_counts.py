"""Count columns: made on first use, kept by increments, dropped when there are too many."""

from __future__ import annotations

import pytest

from moorage.api.selectors import (
    EVERYTHING,
    NOTHING,
    Operator,
    equality_selector,
    make_requirement,
    make_selector,
)
from moorage.snapshot.interning import LabelSets
from moorage.snapshot.pod_columns import CountKey, PodColumns
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.snapshot.builders import cluster, node, pod

WEB = equality_selector({"app": "web"})


@pytest.fixture
def snapshot() -> Snapshot:
    web = {"app": "web"}
    return cluster(
        node("n1"),
        node("n2"),
        pods={
            "n1": [pod("p1", labels=web), pod("p2", labels=web, deleted=True), pod("p3")],
            "n2": [pod("p4", labels=web, namespace="b"), pod("p5", labels={"app": "db"})],
            "unknown": [pod("p6", labels=web)],
        },
    )


@pytest.mark.parametrize(
    ("key", "counts"),
    [
        pytest.param(CountKey(EVERYTHING, None, False), [3, 2], id="all pods of all namespaces"),
        pytest.param(
            CountKey(EVERYTHING, None, True), [2, 2], id="only pods that are not terminating"
        ),
        pytest.param(CountKey(WEB, None, False), [2, 1], id="by label"),
        pytest.param(CountKey(WEB, frozenset({"a"}), False), [2, 0], id="in one namespace"),
        pytest.param(
            CountKey(WEB, frozenset({"a", "b"}), True),
            [1, 1],
            id="not terminating, in two namespaces",
        ),
        pytest.param(CountKey(WEB, frozenset(), False), [0, 0], id="in no namespace"),
    ],
)
def test_a_count_column_counts_the_pods_of_its_key(snapshot, key, counts):
    assert snapshot.count_column(key).tolist() == counts
    late = pod("late", labels={"app": "web"})
    snapshot.table.add_pod(late, "n2")
    with_late = counts[1] + (key.namespaces != frozenset())
    assert snapshot.count_column(key).tolist() == [counts[0], with_late]
    snapshot.table.remove_pod(late.uid)
    assert snapshot.count_column(key).tolist() == counts


def test_counting_before_any_pod_was_placed():
    assert cluster(node("n1")).count_column(CountKey(EVERYTHING, None, False)).tolist() == [0]
    assert Snapshot().count_column(CountKey(EVERYTHING, None, True)).tolist() == []


def test_equal_keys_share_a_column(snapshot):
    for _ in range(3):
        snapshot.count_column(CountKey(equality_selector({"app": "web"}), frozenset({"a"}), True))
    assert len(snapshot.table.pods.count_keys) == 1


def test_a_label_set_that_takes_over_an_id_is_matched_again(snapshot):
    key = CountKey(WEB, None, False)
    snapshot.count_column(key)
    snapshot.table.add_pod(pod("x", labels={"app": "web", "own": "1"}), "n1")
    snapshot.table.remove_pod("uid-x")
    snapshot.table.add_pod(pod("y", labels={"own": "2"}), "n1")
    assert snapshot.count_column(key).tolist() == [2, 1]


def test_a_pod_is_taken_off_where_its_row_went(snapshot):
    key = CountKey(EVERYTHING, None, False)
    assert snapshot.count_column(key).tolist() == [3, 2]
    snapshot.table.remove_node("n1")
    assert snapshot.count_column(key).tolist() == [2]
    snapshot.table.remove_pod("uid-p4")
    assert snapshot.count_column(key).tolist() == [1]


def own_key(i: int) -> CountKey:
    return CountKey(equality_selector({"revision": str(i)}), None, False)


def test_unused_count_columns_are_dropped(snapshot, monkeypatch):
    monkeypatch.setattr(PodColumns, "_KEEP", 3)
    monkeypatch.setattr(PodColumns, "_IDLE", 10)
    for i in range(3):
        snapshot.count_column(own_key(i))
    for _ in range(20):
        snapshot.count_column(own_key(0))
    snapshot.count_column(own_key(3))
    assert len(snapshot.table.pods.count_keys) == 2
    assert snapshot.count_column(own_key(1)).tolist() == [0, 0]


def test_above_the_limit_the_oldest_count_columns_are_dropped(snapshot, monkeypatch):
    monkeypatch.setattr(PodColumns, "_KEEP", 3)
    monkeypatch.setattr(PodColumns, "_MOST", 5)
    for i in range(40):
        snapshot.count_column(own_key(i))
        snapshot.count_column(own_key(0))
        assert len(snapshot.table.pods.count_keys) <= 5
    assert set(snapshot.table.pods._counts) == {own_key(i) for i in (0, 36, 37, 38, 39)}
    families = {key[0] for key in snapshot.table.columns._arrays if isinstance(key, tuple)}
    counted = [key for key in snapshot.table.columns._arrays if key[0] == "count"]
    assert ("count" in families, len(counted)) == (True, 5)


@pytest.mark.parametrize(
    ("selector", "namespaces", "expected"),
    [
        pytest.param(WEB, None, ["web a", "web b", "web own"], id="one label"),
        pytest.param(WEB, frozenset({"b"}), ["web b"], id="in one namespace"),
        pytest.param(
            make_selector([make_requirement("app", Operator.IN, ("web", "db"))]),
            None,
            ["web a", "web b", "web own", "db"],
            id="one of two values",
        ),
        pytest.param(
            equality_selector({"app": "web", "own": "1"}),
            None,
            ["web own"],
            id="label and namespace",
        ),
        pytest.param(
            make_selector([make_requirement("app", Operator.DOES_NOT_EXIST)]),
            None,
            ["plain"],
            id="a selector without a wanted label",
        ),
        pytest.param(EVERYTHING, frozenset(), [], id="in no namespace"),
        pytest.param(NOTHING, None, [], id="a selector that matches nothing"),
        pytest.param(equality_selector({"app": "never"}), None, [], id="a value that no pod has"),
    ],
)
def test_label_sets_are_found_by_what_a_selector_wants(selector, namespaces, expected):
    named = {
        "web a": ("a", {"app": "web"}),
        "web b": ("b", {"app": "web"}),
        "web own": ("a", {"app": "web", "own": "1"}),
        "db": ("a", {"app": "db"}),
        "plain": ("a", {}),
    }
    sets = LabelSets()
    gone = sets.use("a", {"app": "web", "own": "2"})
    ids = {sets.use(*item): name for name, item in named.items()}
    sets.release(gone)
    assert [ids[one] for one in sets.matching(selector, namespaces)] == expected
    for one in ids:
        sets.release(one)
    assert (sets.matching(EVERYTHING, None), sets._by_pair) == ([], {})


def test_a_label_set_used_again_and_again_has_one_id_and_a_released_id_is_given_to_another():
    sets = LabelSets()
    web, db = {"app": "web"}, {"app": "db"}
    assert [sets.use("a", web), sets.use("a", dict(web)), sets.use("b", web)] == [0, 0, 1]
    assert [sets.release(1), sets.use("a", db), sets.use("b", web), sets.use("a", web)] == [
        1,
        1,
        2,
        0,
    ]
    assert [sets.release(0), sets.release(0), sets.release(0)] == [None, None, 0]
    assert [sets.use("a", db), sets.use("c", web), sets.item(0)] == [1, 0, ("c", web)]
