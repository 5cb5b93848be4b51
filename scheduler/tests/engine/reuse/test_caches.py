"""Every cache of answers has one shape: it follows changed rows, forgets, and counts its bytes."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import pytest

import moorage.engine.reuse
import moorage.plugins.preemption
from moorage.engine.reuse import shapes
from moorage.engine.reuse.shapes import Shape
from moorage.framework.caches import NO_CHANGES, Cache, Changes, RowFollower
from moorage.plugins.preemption.known_rows import Replicas
from moorage.snapshot.key_log import KeyLog
from moorage.snapshot.pod_info import PodInfo
from moorage_sandbox.testing.builders import node, pod
from scheduler.tests.engine.reuse.test_answers import World
from scheduler.tests.plugins.preemption.test_known_rows import World as Preempting
from scheduler.tests.plugins.preemption.test_known_rows import full

NAMES = tuple(f"m{i:02}" for i in range(12))
ASKED = pod("s0", cpu="1", memory="1Gi")
GUEST = pod("guest", cpu="1", memory="1Gi", priority=5)


@pytest.fixture(autouse=True)
def followed_however_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let changes be followed as on a large cluster, where a pass over all rows costs more."""
    monkeypatch.setattr(shapes, "PASS_ROWS", -8)


def world(cpu: str = "2") -> World:
    """Return a cluster in which some nodes have a place, decided about with and without reuse."""
    made = World({"s0": ASKED}, GUEST, names=NAMES)
    for name in NAMES:
        made.apply(("node", node(name, cpu=cpu, memory="8Gi")))
    return made


def shape_of(made: World) -> Shape:
    assert made.reusing.reuse is not None
    return made.reusing.reuse.shapes.find(PodInfo(ASKED))


class Kept:
    """A cache with answers, a change of rows, and decisions that compare reuse with none."""

    def __init__(
        self, cache: Cache, change: Callable[[], None], decide: Callable[[], None]
    ) -> None:
        self.cache = cache
        self.change = change
        self.decide = decide


def of_shape(name: str, *, nominated: bool = False, cpu: str = "2") -> Kept:
    made = world(cpu)

    def decide() -> None:
        made.apply(("decide", "s0"))

    def change() -> None:
        for each in made.names[:3]:
            if cpu == "0":
                made.apply(("node", node(each, cpu="0", memory="1")))
            else:
                made.apply(("fill", each))
                made.apply(("fill", each))

    if nominated:
        made.apply(("nominate", {NAMES[5]: ["guest"]}))
    decide()
    decide()
    return Kept(getattr(shape_of(made), name), change, decide)


def of_preemptors() -> Kept:
    made: Preempting = full(Preempting(100, 1))

    def decide() -> None:
        made.preempt(1, "", follow=False)

    def change() -> None:
        for index in range(3):
            made.take_away(index)

    decide()
    (kind,) = replicas_of(made)._kinds.values()
    return Kept(kind.rows, change, decide)


def replicas_of(made: Preempting) -> Replicas:
    plugin: Any = made.reusing.profile.plugins["DefaultPreemption"]
    found: Replicas = plugin._evaluator.around.replicas
    return found


CASES: dict[str, Callable[[], Kept]] = {
    "PreFilterCache": lambda: of_shape("pre_filters"),
    "FilterCache": lambda: of_shape("filters"),
    "ScoreCache": lambda: of_shape("scores"),
    "BestRows": lambda: of_shape("best"),
    "NominatedCache": lambda: of_shape("nominated", nominated=True),
    "RejectionCache": lambda: of_shape("rejections", cpu="0"),
    "KnownRows": of_preemptors,
}
BY_ROW = sorted(CASES.keys() - {"PreFilterCache"})


def caches() -> Iterator[type]:
    """Yield the classes of reuse and preemption that follow changes, by their first parameter."""
    for package in (moorage.engine.reuse, moorage.plugins.preemption):
        for found in pkgutil.iter_modules(package.__path__, package.__name__ + "."):
            module = import_module(found.name)
            for _, each in inspect.getmembers(module, inspect.isclass):
                follow = getattr(each, "follow", None)
                if each.__module__ == found.name and "changes" in str(
                    follow and inspect.signature(follow)
                ):
                    yield each


def test_every_cache_has_a_case_below() -> None:
    assert sorted(each.__name__ for each in caches()) == sorted(CASES)
    made = shape_of(world())
    assert sorted([*(type(each).__name__ for each in made.caches), "KnownRows"]) == sorted(CASES)


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_cache_counts_its_bytes_until_it_forgets_its_answers(name: str) -> None:
    kept = CASES[name]()
    assert type(kept.cache).__name__ == name
    size = kept.cache.nbytes
    assert size > 0
    kept.cache.forget()
    assert kept.cache.nbytes == 0
    kept.decide()
    assert kept.cache.nbytes > 0


@pytest.mark.parametrize("name", sorted(CASES))
def test_a_cache_follows_rows_that_changed(name: str) -> None:
    kept = CASES[name]()
    kept.change()
    kept.decide()
    kept.change()
    kept.decide()


@pytest.mark.parametrize("name", BY_ROW)
def test_decisions_differ_where_a_cache_does_not_follow(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison above would not hold without the cache's own `follow`."""
    kept = CASES[name]()
    monkeypatch.setattr(type(kept.cache), "follow", lambda self, changes: None)
    with pytest.raises(AssertionError):  # noqa: PT012 - any of these decisions may differ
        for _ in range(2):
            kept.change()
            kept.decide()


@pytest.mark.parametrize("name", ["NominatedCache", "RejectionCache", "KnownRows"])
def test_a_cache_of_many_keys_is_bounded(name: str) -> None:
    """Its owner bounds the others: `ShapeCache` drops shapes beyond its bytes."""
    if name == "KnownRows":
        preempting = full(Preempting(100, 1))
        replicas = replicas_of(preempting)
        sizes: list[int] = []
        for priority in range(5, 35):
            preempting.reusing.decide(preempting.pod(3, priority))
            sizes.append(replicas.nbytes)
        assert len(replicas._kinds) == 8
        assert max(sizes[8:]) == sizes[7]
        return
    made = world("2" if name == "NominatedCache" else "0")
    if name == "NominatedCache":
        made.apply(("nominate", {NAMES[5]: ["guest"]}))
    shape, sizes = shape_of(made), []
    for priority in range(100):
        made.reusing.decide(PodInfo(pod(f"p{priority}", cpu="1", memory="1Gi", priority=priority)))
        shape = shape_of(made)
        cache: Cache = shape.nominated if name == "NominatedCache" else shape.rejections
        sizes.append(cache.nbytes)
    assert 0 < max(sizes) == max(sizes[:64]) < 64 * 4096


@pytest.mark.parametrize(
    ("nodes", "pods", "nominated", "expected"),
    [
        pytest.param([], [], [], NO_CHANGES, id="nothing changed"),
        pytest.param([], [4, 2, 4], [], Changes([4, 2], [], are_few=True), id="pods of two rows"),
        pytest.param([3], [], [], Changes([3], [3], are_few=False), id="a node"),
        pytest.param(
            [3, 1], [2, 3], [], Changes([1, 2, 3], [1, 3], are_few=False), id="nodes and pods"
        ),
        pytest.param(
            [3], [2], [5, 3], Changes([2, 3, 5], [3], are_few=False), id="a row in every log"
        ),
        pytest.param(
            [], [4, 2], [2, 6], Changes([4, 2, 6], [], are_few=True), id="a row in two logs"
        ),
        pytest.param(
            [], [*range(17, 0, -1)], [], Changes([*range(1, 18)], [], are_few=False), id="many rows"
        ),
        pytest.param(
            [],
            [*range(9)],
            [*range(16, 7, -1)],
            Changes([*range(17)], [], are_few=False),
            id="many in two logs",
        ),
        pytest.param([], [1] * 100, [4], None, id="more pods than the log keeps"),
        pytest.param([], [4], [1] * 100, None, id="more nominated pods than the log keeps"),
        pytest.param([1] * 100, [4], [], None, id="more nodes than the log keeps"),
        pytest.param([3], [4], [1] * 100, None, id="a node, and more than a log keeps"),
    ],
)
def test_the_follower_tells_the_rows_that_changed_since(
    nodes: list[int], pods: list[int], nominated: list[int], expected: Changes | None
) -> None:
    logs = KeyLog[int](20), KeyLog[int](20), KeyLog[int](20)
    logs[0].append(7)
    follower = RowFollower(*logs)
    for log, rows in zip(logs, (nodes, pods, nominated), strict=True):
        for row in rows:
            log.append(row)
    assert follower.changes() == expected
    assert follower.changes() is NO_CHANGES
    assert follower.positions == [log.position for log in logs]
