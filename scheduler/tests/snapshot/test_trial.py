"""What-ifs: trials nest, are seen while open, and leave no trace when undone."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.snapshot.pod_info import PodInfo
from scheduler.tests.snapshot.builders import cluster, content, node, pod, port, validate
from scheduler.tests.snapshot.histories import NODE_NAMES, World, histories, pods


def test_a_trial_shows_its_changes_and_takes_them_back():
    staying = pod("staying", requests={"cpu": "1"}, ports=[port(80)])
    sharing = pod("sharing", requests={"cpu": "2"}, ports=[port(80)])
    snapshot = cluster(node("n1"), node("n2"), pods={"n1": [staying, sharing]})
    before, order = content(snapshot), [info.name for info in snapshot.pods(0)]
    with snapshot.trial() as trial:
        trial.remove_pod(staying.uid)
        trial.add_pod(PodInfo(pod("nominated", requests={"cpu": "3"})), 1)
        assert snapshot.requested("cpu").tolist() == [2000, 3000]
        assert snapshot.port_sets.at(0) == frozenset()
        with snapshot.trial() as inner:
            inner.add_pod(PodInfo(staying), 1)
            assert snapshot.requested("cpu").tolist() == [2000, 4000]
        assert snapshot.requested("cpu").tolist() == [2000, 3000]
    assert content(snapshot) == before
    assert [info.name for info in snapshot.pods(0)] == order
    validate(snapshot)


def test_undone_rows_count_as_changed():
    snapshot = cluster(node("n1"), node("n2"), pods={"n1": [pod("p")]})
    log = snapshot.table.pod_log
    position = log.position
    with snapshot.trial() as trial:
        trial.remove_pod("uid-p")
        inside = log.position
    changed = log.since(inside)
    assert changed is not None
    assert (set(changed), set(log.since(position) or ())) == ({0}, {0})


def test_a_trial_is_undone_when_something_breaks():
    snapshot = cluster(node("n1"), pods={"n1": [pod("p")]})
    before = content(snapshot)

    def break_inside() -> None:
        with snapshot.trial() as trial:
            trial.remove_pod("uid-p")
            raise RuntimeError("plugin bug")

    with pytest.raises(RuntimeError, match="plugin bug"):
        break_inside()
    assert content(snapshot) == before


def test_a_trial_can_be_used_again_after_undo():
    snapshot = cluster(node("n1"))
    trial = snapshot.trial()
    for _ in range(2):
        trial.add_pod(PodInfo(pod("p")), 0)
        assert snapshot.pod_count.tolist() == [1]
        trial.undo()
        assert snapshot.pod_count.tolist() == [0]


@pytest.mark.parametrize(
    ("uid", "text"),
    [
        pytest.param("uid-nobody", "pod uid-nobody is on no node", id="an unknown pod"),
        pytest.param("uid-hidden", "pod a/hidden is on node gone", id="a pod of an unknown node"),
    ],
)
def test_only_counted_pods_can_be_taken_away(uid, text):
    snapshot = cluster(node("n1"), pods={"gone": [pod("hidden")]})
    with snapshot.trial() as trial, pytest.raises(AssertionError, match=text):
        trial.remove_pod(uid)


def test_nodes_may_not_change_under_a_trial():
    snapshot = cluster(node("n1"))
    trial = snapshot.trial()
    snapshot.table.add_node(node("n2"))
    with pytest.raises(AssertionError, match="nodes changed during a trial"):
        trial.undo()


@settings(max_examples=80)
@given(histories, st.data())
def test_undone_nested_trials_leave_no_trace(history, data):
    world = World()
    for event in history:
        world.apply(event)
        if event[0] == "look":
            content(world.snapshot)
    snapshot = world.snapshot
    if snapshot.num_nodes == 0:
        return
    before = content(snapshot)
    orders = [[info.uid for info in snapshot.pods(row)] for row in range(snapshot.num_nodes)]

    def play(depth: int) -> None:
        start = content(snapshot)
        with snapshot.trial() as trial:
            for i in range(data.draw(st.integers(0, 3))):
                here = [
                    uid
                    for pods_ in map(list, map(snapshot.pods, range(snapshot.num_nodes)))
                    for uid in (info.uid for info in pods_)
                ]
                if here and data.draw(st.booleans()):
                    trial.remove_pod(data.draw(st.sampled_from(here)))
                else:
                    added = PodInfo(data.draw(pods(f"new-{depth}-{i}")))
                    trial.add_pod(added, data.draw(st.integers(0, snapshot.num_nodes - 1)))
            validate(snapshot)
            if depth < 2:
                play(depth + 1)
        assert content(snapshot) == start

    play(0)
    assert content(snapshot) == before
    assert [[i.uid for i in snapshot.pods(r)] for r in range(snapshot.num_nodes)] == orders
    validate(snapshot)
    assert set(snapshot.names) <= set(NODE_NAMES)
