"""PodTopologySpread equals its scalar reference: at rest, while things change, and in trials."""

from __future__ import annotations

import math
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.config.plugin_args import PodTopologySpreadArgs
from moorage.framework.cycle_state import CycleState
from moorage.framework.status import Code
from moorage.plugins.spread.pod_topology_spread import _PRE_FILTER as PRE_FILTER
from moorage.plugins.spread.skew import rounded
from moorage.snapshot.listers import Listers
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage_lab.fault_sim.reference import spread as reference
from scheduler.tests.plugins.builders import cluster, make
from scheduler.tests.plugins.builders import node as a_node
from scheduler.tests.plugins.builders import pod as a_pod
from scheduler.tests.plugins.spread import strategies as random

Cluster = list[tuple[Node, list[Pod]]]

SOME = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)

MANY = settings(SOME, max_examples=80)

arguments = st.just((PodTopologySpreadArgs(), reference.SYSTEM)) | random.default_lists.map(
    lambda written: (
        PodTopologySpreadArgs(defaulting_type="List", default_constraints=written),
        written,
    )
)


def build(random_cluster: Cluster) -> Snapshot:
    return cluster(
        *(node for node, _ in random_cluster),
        pods={node.name: placed for node, placed in random_cluster},
    )


class Asked:
    """A plugin over a snapshot, asked in the words of the reference."""

    def __init__(self, snapshot: Snapshot, args: PodTopologySpreadArgs) -> None:
        self.snapshot = snapshot
        self.plugin, self.reasons = make("PodTopologySpread", snapshot, args=args)

    def state(self, pod: Pod) -> CycleState | None:
        state = CycleState()
        result, status = self.plugin.pre_filter(state, PodInfo(pod), self.snapshot)
        assert result is None
        if status.code is Code.SKIP:
            return None
        assert status.ok, status
        return state

    def filtered(self, state: CycleState, pod: Pod, rows: list[int] | None = None):
        view = self.snapshot.all() if rows is None else self.snapshot.rows(rows)
        answer = self.plugin.filter(state, PodInfo(pod), view)
        if answer is None:
            return {}
        assert answer.code_n.any(), "an answer without a failing row costs for nothing"
        assert (len(answer.code_n), answer.code_n.dtype) == (len(view), "uint8")
        assert (len(answer.reason_n), answer.reason_n.dtype) == (len(view), "int32")
        return {
            self.snapshot.names[int(row)]: (Code(int(code)).text, self.reasons.reasons(int(reason)))
            for row, code, reason in zip(
                view.row_numbers(), answer.code_n, answer.reason_n, strict=True
            )
            if code
        }

    def row(self, name: str) -> int:
        row = self.snapshot.row_of(name)
        assert row is not None
        return row

    def scored(self, pod: Pod, feasible: list[str]):
        rows = [self.row(name) for name in feasible]
        view, state, info = self.snapshot.rows(rows), CycleState(), PodInfo(pod)
        status = self.plugin.pre_score(state, info, view)
        if status.code is Code.SKIP:
            return None
        assert status.ok, status
        raw = self.plugin.score(state, info, view)
        return raw.tolist(), self.plugin.normalize(state, info, raw).tolist()


@MANY
@given(random_cluster=random.clusters(), pod=random.asking(), data=st.data())
def test_a_row_must_pass_with_nominated_pods_counted_on_their_nodes_and_without(
    random_cluster, pod, data
):
    """Any pod of the random cluster may be nominated instead of placed."""
    placed: Cluster = []
    nominated: dict[str, list[PodInfo]] = {}
    for one, its_pods in random_cluster:
        waiting = [each for each in its_pods if data.draw(st.booleans())]
        placed.append((one, [each for each in its_pods if each not in waiting]))
        if waiting:
            nominated[one.metadata.name] = [PodInfo(each) for each in waiting]
    snapshot = build(placed)
    snapshot.nominations = nominated
    asked = Asked(snapshot, PodTopologySpreadArgs())
    state, listers = asked.state(pod), snapshot.listers
    without = reference.filtered(placed, pod, reference.SYSTEM, listers)
    beside = reference.filtered(random_cluster, pod, reference.SYSTEM, listers)
    assert (state is None) == (without is None)
    if state is None or without is None or beside is None:
        return
    too_soon = {name: ("Pending", reasons) for name, (_, reasons) in without.items()}
    assert asked.filtered(state, pod) == {**too_soon, **beside}


def agree(asked: Asked, pod: Pod, now: Cluster, defaults: Any, feasible: list[str]) -> None:
    """Hold every answer about one pod equal to the reference's."""
    listers = asked.snapshot.listers
    expected = reference.filtered(now, pod, defaults, listers)
    state = asked.state(pod)
    assert (state is None) == (expected is None)
    if state is not None and expected is not None:
        assert asked.filtered(state, pod) == expected
        for row, name in enumerate(asked.snapshot.names):
            only = {k: v for k, v in expected.items() if k == name}
            assert asked.filtered(state, pod, [row]) == only
        assert asked.filtered(state, pod, []) == {}
    assert asked.scored(pod, feasible) == reference.scored(now, pod, feasible, defaults, listers)


@SOME
@given(data=st.data(), now=random.clusters(), args=arguments, explicit=st.booleans())
def test_rejections_and_scores_equal_the_reference(data, now, args, explicit):
    asked = Asked(build(now), args[0])
    for _ in range(data.draw(st.integers(0, 4))):
        random.put(asked.snapshot.listers, data.draw(random.services() | random.owning()))
    names = [node.name for node, _ in now]
    feasible = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    agree(asked, data.draw(random.asking(explicit=explicit)), now, args[1], feasible)


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, Any]:
    kind = draw(st.sampled_from(["node", "gone", "pod", "end", "put", "service gone"]))
    name = draw(st.sampled_from(random.NODE_NAMES))
    if kind == "node":
        return kind, draw(random.nodes(name))
    if kind == "pod":
        return kind, (name, draw(random.placed(f"new-{draw(st.integers(0, 9))}")))
    if kind == "put":
        return kind, draw(random.services() | random.owning())
    if kind == "service gone":
        return kind, draw(random.services())
    return kind, name


def change(snapshot: Snapshot, now: dict[str, tuple[Node, list[Pod]]], what: tuple[str, Any]):
    """Do one thing to the snapshot and to the plain lists."""
    (kind, detail), table, listers = what, snapshot.table, snapshot.listers
    if kind == "node":
        table.add_node(detail)
        now[detail.name] = (detail, now.get(detail.name, (detail, []))[1])
    elif kind == "put":
        random.put(listers, detail)
    elif kind == "service gone":
        listers.services.remove(detail)
    elif kind == "pod":
        name, pod = detail
        if name in now and table.node_of_pod(pod.uid) is None:
            table.add_pod(pod, name)
            now[name][1].append(pod)
    elif detail in now and kind == "end" and now[detail][1]:
        table.remove_pod(now[detail][1].pop(0).uid)
    elif detail in now and kind == "gone" and len(now) > 1:
        for pod in now[detail][1]:
            table.remove_pod(pod.uid)
        table.remove_node(detail)
        del now[detail]


@SOME
@given(
    start=random.clusters(),
    pods=st.lists(random.asking() | random.asking(explicit=False), min_size=1, max_size=2),
    events=st.lists(changes(), max_size=8),
    args=arguments,
)
def test_answers_stay_right_while_the_cluster_changes(start, pods, events, args):
    asked = Asked(build(start), args[0])
    now = {node.name: (node, list(placed)) for node, placed in start}
    for what in [None, *events]:
        if what is not None:
            change(asked.snapshot, now, what)
        for pod in pods:
            agree(asked, pod, list(now.values()), args[1], list(asked.snapshot.names))


@MANY
@given(data=st.data(), now=random.clusters(), pod=random.asking(actions=(reference.HARD,)))
def test_a_trial_moves_pods_of_one_node_and_leaves_no_trace(data, now, pod):
    asked, listers = Asked(build(now), PodTopologySpreadArgs()), Listers()
    state = asked.state(pod)
    assert state is not None
    before = asked.filtered(state, pod)
    node, placed = data.draw(st.sampled_from(now))
    row = asked.row(node.name)
    extra = [data.draw(random.placed(f"x{i}")) for i in range(data.draw(st.integers(1, 4)))]
    gone = data.draw(st.lists(st.sampled_from(placed), unique_by=id)) if placed else []
    moves = [(node.name, other, -1) for other in gone]
    moves += [(node.name, other, +1) for other in extra]
    twin = state.copy()
    with asked.snapshot.trial() as trial:
        for other in gone:
            trial.remove_pod(other.uid)
            asked.plugin.remove_pod(twin, PodInfo(pod), PodInfo(other), row=row)
        for other in extra:
            trial.add_pod(PodInfo(other), row)
            asked.plugin.add_pod(twin, PodInfo(pod), PodInfo(other), row=row)
        expected = reference.filtered(now, pod, reference.SYSTEM, listers, moves)
        assert expected is not None
        assert asked.filtered(twin, pod) == expected
        only = {name: rejection for name, rejection in expected.items() if name == node.name}
        assert asked.filtered(twin, pod, [row]) == only
        for name, other, step in reversed(moves):
            back = asked.plugin.remove_pod if step > 0 else asked.plugin.add_pod
            back(twin, PodInfo(pod), PodInfo(other), row=asked.row(name))
        assert asked.filtered(twin, pod) == before
    assert asked.filtered(state, pod) == before
    agree(asked, pod, now, reference.SYSTEM, list(asked.snapshot.names))


@MANY
@given(data=st.data(), now=random.clusters(), pod=random.asking(actions=(reference.HARD,)))
def test_pods_moved_on_several_nodes_are_all_counted(data, now, pod):
    asked, listers = Asked(build(now), PodTopologySpreadArgs()), Listers()
    state = asked.state(pod)
    assert state is not None
    names, moves = list(asked.snapshot.names), []
    for i in range(data.draw(st.integers(2, 4))):
        name, other = data.draw(st.sampled_from(names)), data.draw(random.placed(f"x{i}"))
        moves.append((name, other, +1))
        row = asked.row(name)
        asked.plugin.add_pod(state, PodInfo(pod), PodInfo(other), row=row)
    expected = reference.filtered(now, pod, reference.SYSTEM, listers, moves)
    assert asked.filtered(state, pod) == expected


@pytest.mark.parametrize("seen", [0, 500])
def test_deleted_domains_neither_change_scores_nor_take_room(seen):
    snapshot = cluster()
    snapshot.label_column(random.HOSTNAME)
    for i in range(seen):
        snapshot.table.add_node(a_node(f"old-{i}", labels={random.HOSTNAME: f"old-{i}"}))
        snapshot.table.remove_node(f"old-{i}")
    hosts = {"n0": {random.HOSTNAME: ""}, "n1": {random.HOSTNAME: "h1"}, "bare": {}}
    now: Cluster = [(a_node(name, labels=labels), []) for name, labels in hosts.items()]
    for node, _ in now:
        snapshot.table.add_node(node)
    rules = [
        {"maxSkew": 1, "topologyKey": random.HOSTNAME, "whenUnsatisfiable": action}
        for action in (reference.HARD, reference.SOFT)
    ]
    pod, asked = a_pod(topologySpreadConstraints=rules), Asked(snapshot, PodTopologySpreadArgs())
    agree(asked, pod, now, reference.SYSTEM, list(hosts))
    state = asked.state(pod)
    assert state is not None
    placed = state.read(PRE_FILTER).placed
    assert placed is not None
    assert len(placed._tallies[0]) == 3  # two domains, and a place for "none"


def labelled(name: str, labels: dict[str, str]) -> Pod:
    pod = a_pod(name)
    return replace(pod, metadata=replace(pod.metadata, labels=labels))


@pytest.mark.parametrize("lost", [["last"], ["n0"], ["n0", "last"]])
def test_a_domain_of_only_the_last_row_counts_when_that_row_is_feasible(lost):
    hosts = [*(f"n{i}" for i in range(50)), "last"]
    now: Cluster = [
        (a_node(name, labels={random.ZONE: "far" if name == "last" else "near"}), [])
        for name in hosts
    ]
    now[0][1].extend(labelled(f"p{i}", {"app": "a"}) for i in range(5))
    constraint = {"maxSkew": 3, "topologyKey": random.ZONE, "whenUnsatisfiable": reference.SOFT}
    constraint["labelSelector"] = {"matchLabels": {"app": "a"}}
    pod = a_pod(topologySpreadConstraints=[constraint])
    feasible = [name for name in hosts if name not in lost]
    asked = Asked(build(now), PodTopologySpreadArgs())
    agree(asked, pod, now, reference.SYSTEM, feasible)


near_halves = st.integers(0, 2**51).flatmap(
    lambda whole: st.sampled_from(
        [math.nextafter(whole + 0.5, 0.0), whole + 0.5, math.nextafter(whole + 0.5, math.inf)]
    )
)


@SOME
@given(numbers=st.lists(near_halves | st.floats(0, 2**53), max_size=9))
def test_halves_are_rounded_up_and_smaller_fractions_down(numbers):
    expected = [int(Decimal(x).to_integral_value(ROUND_HALF_UP)) for x in numbers]
    assert rounded(np.array(numbers, np.float64)).tolist() == expected
