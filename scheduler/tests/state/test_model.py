"""Queue and cache driven at random against a naive model (`machine`), as v1.36 and as v1.20."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import settings

from moorage.api.changes import ClusterEvent
from moorage.base.rng import Random, Streams
from scheduler.tests.state.build import SECOND, V1_20
from scheduler.tests.state.machine import QueueAndCache
from scheduler.tests.state.model import AFTER, EVENTS, NAMES, PLUGINS, SKIP, Model

# (sub-queue, cause): what long walks must have met, or they prove little.
WAYS = [
    ("active", "UnschedulablePodAdd"),
    ("active", "NodeAdd"),
    ("active", "BackoffComplete"),
    ("active", "PopFromBackoffQ"),
    ("active", "ForceActivate"),
    ("active", "AssignedPodDelete"),
    ("backoff", "ScheduleAttemptFailure"),
    ("backoff", "NodeAdd"),
    ("unschedulable", "ScheduleAttemptFailure"),
    ("unschedulable", "UnschedulablePodAdd"),
]
# What the queue of v1.20 must have met; it never pops from backoff.
OLD_WAYS = [
    ("active", "UnschedulablePodAdd"),
    ("active", "NodeAdd"),
    ("active", "NodeUpdateNodeTaint"),
    ("active", "BackoffComplete"),
    ("active", "ForceActivate"),
    ("active", "UnschedulableTimeout"),
    ("active", "UnschedulablePodUpdatePodLabel"),
    ("backoff", "ScheduleAttemptFailure"),
    ("backoff", "NodeUpdateNodeTaint"),
    ("unschedulable", "ScheduleAttemptFailure"),
    ("unschedulable", "BackoffComplete"),
]


class Old(QueueAndCache):
    """The queue of v1.20; an update in flight, which makes a second copy, is left out."""

    version_of_queue = V1_20
    leftover_seconds = 60
    updatable: tuple[str, ...] = ("active", "backoff", "unschedulable", "gated")

    def __init__(self) -> None:
        super().__init__()
        self.moved = -1

    def ends_ns(self, m: Model) -> int:
        backoff = min(1 << (m.attempts - 1), 10) * SECOND if m.attempts else 0
        return m.since_ns + backoff if backoff else 0

    def backing_off(self, m: Model) -> bool:
        return self.ends_ns(m) > self.world.clock.now_ns()

    def early(self) -> list[Model]:
        return []

    def leave_backoff(self, m: Model) -> None:
        self.enter(m, "active")

    def enter(self, m: Model, place: str) -> None:
        if place == "backoff" and m.place != "gated":
            m.place = place  # asked at the gate when it leaves
        else:
            super().enter(m, place)

    def updated(self, m: Model, relabel: bool) -> None:
        if m.place == "backoff" or (relabel and m.place in ("unschedulable", "gated")):
            self.enter(m, "active")

    def outcome(self, m: Model, event: ClusterEvent) -> int:
        return AFTER

    def happened(self, event: int | ClusterEvent) -> None:
        self.moved = self.cycle

    def activated(self, m: Model) -> None:
        super().activated(m)
        if m.in_flight:
            self.moved = self.cycle

    def outcome_on_return(self, m: Model, known: bool) -> int:
        return AFTER if self.moved >= self.cycle else SKIP


TestQueueAndCache = QueueAndCache.TestCase
TestQueueAndCache.settings = settings(max_examples=40, stateful_step_count=40)
TestOldQueueAndCache = Old.TestCase
TestOldQueueAndCache.settings = settings(max_examples=40, stateful_step_count=40)


def walk(machine: QueueAndCache, rng: Random, steps: int) -> None:
    """Take evenly drawn steps: long ways that shrinking-minded examples seldom go."""
    machine.first_nodes()

    def some(most: int) -> set[str]:
        return set(rng.sample(PLUGINS, rng.randint(0, most)))

    def pick() -> int:
        return rng.randrange(len(NAMES))

    often: list[Callable[[], None]] = [
        lambda: machine.add(rng.choice(NAMES), rng.randint(0, 2)),
        lambda: machine.update(pick(), rng.random() < 0.5),
        lambda: machine.cluster_event(rng.choice(EVENTS)),
        machine.pop,
        lambda: machine.fail(pick(), some(2), some(1) if rng.random() < 0.3 else set()),
        lambda: machine.fail(pick(), some(1), set()),
        machine.attempts_of_deleted_pods_end,
        lambda: machine.seconds_pass(rng.randint(1, 40)),
    ]
    seldom: list[Callable[[], None]] = [
        lambda: machine.delete(pick()),
        lambda: machine.delete(pick()),
        lambda: machine.assume(pick(), rng.choice(["n1", "n2", "ghost"]), rng.random() < 0.5),
        lambda: machine.confirm(pick(), rng.random() < 0.2),
        lambda: machine.unwind(pick(), some(1)),
        lambda: machine.activate(rng.choice(NAMES)),
        lambda: machine.toggle_gate(rng.choice(NAMES)),
        machine.world.gates.clear,
        lambda: machine.bound_by_somebody_else(pick()),
        lambda: machine.minutes_pass(rng.randint(40, machine.leftover_seconds + 1)),
        lambda: machine.node_event(rng.choice(["n1", "n2", "ghost"])),
        lambda: machine.pop_of_its_group(rng.choice(NAMES)),
    ]
    for _ in range(steps):
        rng.choice(seldom if rng.random() < 0.25 else often)()
        machine.every_pod_is_where_the_model_has_it()
        machine.whoever_waits_for_a_pod_was_woken()
        machine.the_numbers_are_right()


@pytest.mark.parametrize(
    ("kind", "ways"), [(QueueAndCache, WAYS), (Old, OLD_WAYS)], ids=["v1.36", "v1.20"]
)
def test_the_queue_equals_its_model_on_random_walks(kind, ways):
    entered: Counter[tuple[str, str]] = Counter()
    for seed in range(3):
        machine = kind()
        walk(machine, Streams(seed).stream("walk"), 2000)
        entered += machine.world.seen.entered
    missing = [way for way in ways if not entered[way]]
    assert not missing, "the walks prove little if they never go there"
