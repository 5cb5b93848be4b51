"""Roll-outs with certain run times, against a loop without any shortcut and the scheduler's cycle.

Left out: how laws are drawn (`test_laws.py`), and the model of a real cluster
(`scheduler/tests/what_if/test_starts.py`).
"""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.base.clock import NS_PER_SECOND
from moorage.base.rng import Random
from moorage.estimates.laws import RunTimeLaw
from moorage.estimates.queue_model import QueueModel, RunningPod, Shape, WaitingUnit
from moorage.estimates.rollout import CutShortError, DrawnStart, Preparation, draw_start
from moorage.plugins.in_tree import in_tree_registry
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.model import ClusterModel
from moorage.virtual.objects import ClusterObjects
from moorage_sandbox.testing.builders import node_manifest, pod_manifest


def certain(seconds: float) -> RunTimeLaw:
    return RunTimeLaw(scale=seconds)


def start_of(model: QueueModel) -> DrawnStart:
    return draw_start(Preparation(model), Random(1))


def slow_start(model: QueueModel) -> float:
    """Look at every moment at every unit and every node, first by rank, then by the queue."""
    free = [list(each) for each in model.free]
    ends = [
        (pod.law.scale - pod.elapsed, pod.node, pod.requests)
        for pod in model.running
        if pod.law is not None
    ]
    waiting = sorted(range(len(model.queue)), key=lambda each: (model.queue[each].rank, each))
    now = 0.0
    while True:
        again = True
        while again:
            again = False
            for number in waiting:
                places = _places(model, free, model.queue[number])
                if places is None:
                    continue
                if number == model.target:
                    return now
                unit = model.queue[number]
                for node, shape, law in zip(places, unit.shapes, unit.laws, strict=True):
                    requests = model.shapes[shape].requests
                    free[node] = [a - b for a, b in zip(free[node], requests, strict=True)]
                    if law is not None:
                        ends.append((now + law.scale, node, requests))
                waiting.remove(number)
                again = True
                break
        if not ends:
            return math.inf
        now = min(end for end, _, _ in ends)
        for end, node, requests in [each for each in ends if each[0] == now]:
            free[node] = [a + b for a, b in zip(free[node], requests, strict=True)]
            ends.remove((end, node, requests))


def _places(model: QueueModel, free: list[list[int]], unit: WaitingUnit) -> list[int] | None:
    left, places = [list(each) for each in free], []
    for index in unit.shapes:
        shape = model.shapes[index]
        for node, amounts in enumerate(left):
            allowed = shape.nodes is None or node in shape.nodes
            if allowed and all(a <= b for a, b in zip(shape.requests, amounts, strict=True) if a):
                left[node] = [b - a for a, b in zip(shape.requests, amounts, strict=True)]
                places.append(node)
                break
        else:
            return None
    return places


@st.composite
def models(draw: st.DrawFn) -> QueueModel:
    nodes = draw(st.integers(1, 3))
    some = st.frozensets(st.integers(0, nodes - 1), min_size=1)
    amounts = st.tuples(st.integers(0, 4), st.integers(0, 2))
    shapes = draw(
        st.lists(st.builds(Shape, amounts, st.one_of(st.none(), some)), min_size=1, max_size=3)
    )
    laws = st.one_of(st.none(), st.builds(certain, st.integers(0, 6).map(float)))
    running = draw(
        st.lists(st.builds(RunningPod, st.integers(0, nodes - 1), amounts, laws), max_size=5)
    )

    def unit(indexes: list[int], law: RunTimeLaw | None, rank: int) -> WaitingUnit:
        return WaitingUnit(tuple(indexes), (law,) * len(indexes), rank)

    members = st.lists(st.integers(0, len(shapes) - 1), min_size=1, max_size=3)
    queue = draw(
        st.lists(st.builds(unit, members, laws, st.integers(-1, 1)), min_size=1, max_size=6)
    )
    free = draw(st.lists(amounts, min_size=nodes, max_size=nodes))
    target = draw(st.integers(0, len(queue) - 1))
    return QueueModel(free=free, shapes=shapes, running=running, queue=queue, target=target)


@settings(max_examples=150, deadline=None)
@given(model=models())
def test_starts_are_those_of_a_loop_without_shortcuts(model: QueueModel) -> None:
    assert start_of(model).seconds == slow_start(model)


def test_the_first_end_since_the_last_start_there_is_what_a_unit_waits_for() -> None:
    running = [RunningPod(0, (4,), certain(10.0 * each), name=f"r{each}") for each in (1, 2, 3)]
    queue = [
        WaitingUnit((0,), (certain(100.0),), name="w"),
        WaitingUnit((1,), (certain(1.0),), name="large"),
    ]
    model = QueueModel(
        free=[(0,)], shapes=[Shape((4,)), Shape((8,))], running=running, queue=queue, target=1
    )
    assert start_of(model) == DrawnStart(30.0, "r2")


def test_pods_that_still_come_may_be_faster() -> None:
    small = WaitingUnit((0,), (certain(1000.0),))
    model = QueueModel(
        free=[(1,)],
        shapes=[Shape((1,)), Shape((4,))],
        running=[RunningPod(0, (3,), certain(50.0), name="r")],
        queue=[WaitingUnit((1,), (None,), name="large")],
        target=0,
    )
    assert start_of(model) == DrawnStart(50.0, "r")
    later = QueueModel(
        free=model.free,
        shapes=model.shapes,
        running=model.running,
        queue=model.queue,
        target=0,
        arrivals=[small],
        arrivals_a_second=1.0,
    )
    assert start_of(later).seconds > 1000.0


def test_roll_outs_end_when_the_time_is_over() -> None:
    model = QueueModel(
        free=[(0,)], shapes=[Shape((1,))], running=[], queue=[WaitingUnit((0,), (None,))], target=0
    )
    with pytest.raises(CutShortError):
        draw_start(Preparation(model), Random(1), is_over=lambda: True)


@pytest.mark.parametrize("seed", range(12))
def test_starts_are_those_of_the_scheduler_but_for_backoff(seed: int) -> None:
    """The scheduler's cycle decides on one node; a pod in backoff starts some seconds later."""
    rng = Random(seed)
    sizes = [rng.randint(1, 4) for _ in range(8)]
    # Of different lengths by far more than any backoff.
    runs = [1000.0 * (number + 1) + 137.0 * number**2 for number in rng.sample(range(12), 12)]
    running = [
        RunningPod(0, (2000,), certain(seconds), name=f"r{n}") for n, seconds in enumerate(runs[:4])
    ]
    queue = [
        WaitingUnit((size - 1,), (certain(seconds),), name=f"default/w{number}")
        for number, (size, seconds) in enumerate(zip(sizes, runs[4:], strict=True))
    ]
    shapes = [Shape((1000 * size,)) for size in range(1, 5)]
    starts = [
        start_of(QueueModel(free=[(0,)], shapes=shapes, running=running, queue=queue, target=each))
        for each in range(len(queue))
    ]
    real = _starts_of_the_cycle(sizes, runs)
    differences = [
        at - start.seconds for at, start in zip(real, starts, strict=True) if at < math.inf
    ]
    assert len(differences) == len(queue)
    assert all(-0.1 <= each <= 60.0 for each in differences), differences


def _starts_of_the_cycle(sizes: list[int], runs: list[float]) -> list[float]:
    objects = ClusterObjects()
    objects.add_json(json.dumps(node_manifest("n", cpu="8")).encode())
    for number in range(4):
        running = pod_manifest(f"r{number}", cpu="2", node_name="n")
        running["metadata"]["uid"] = f"r{number}"
        objects.add_json(json.dumps(running).encode())
    for number, size in enumerate(sizes):
        waits = pod_manifest(f"w{number}", cpu=str(size))
        waits["metadata"].update(
            uid=f"w{number}", creationTimestamp=f"2025-12-31T00:00:{number:02}Z"
        )
        objects.add_json(json.dumps(waits).encode())
    model = ClusterModel(ClusterInputs(objects=objects, registry=in_tree_registry()))
    begin_ns, starts = model.virtual_now_ns, dict[str, float]()
    seconds_of = dict(
        zip([f"r{n}" for n in range(4)] + [f"w{n}" for n in range(8)], runs, strict=True)
    )

    def end_later(name: str) -> None:
        pod = model.objects.pods["default", name]
        due_ns = model.virtual_now_ns + round(seconds_of[name] * NS_PER_SECOND)
        model.call_at(due_ns, lambda: model.drop_pod(pod))

    def note(old: object, new: object) -> None:
        del old, new
        for uid in model.bound:
            if uid not in starts:
                starts[uid] = (model.virtual_now_ns - begin_ns) / NS_PER_SECOND
                end_later(uid)

    for number in range(4):
        end_later(f"r{number}")
    model.changes.append(note)
    model.run(lambda: len(starts) < len(sizes))
    return [starts.get(f"w{number}", math.inf) for number in range(len(sizes))]
