"""Rows are tried at once where Filters count pods by domain or port: as one by one.

Random histories and the real default profile. Pods have labels, affinity, anti-affinity, hard
spread and host ports; some are terminating or nominated. One cycle tries many rows at once, the
other each row by itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, NamedTuple
from unittest import mock

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.codec import from_dict
from moorage.api.workloads import Namespace
from moorage.base.clock import NS_PER_SECOND, rfc3339
from moorage.plugins.preemption.dry_runs import DryRuns
from moorage.snapshot.pod_info import PodInfo
from moorage_sandbox.testing.builders import node
from moorage_sandbox.testing.builders import pod as typed_pod
from scheduler.tests.plugins.preemption.histories import HistoryWorld
from scheduler.tests.plugins.preemption.reference import Budget
from scheduler.tests.plugins.preemption.test_against_reference import budget_of
from scheduler.tests.plugins.preemption.test_pods_seen import OneByOne

HOSTNAME: Final = "kubernetes.io/hostname"
ZONE: Final = "zone"
NODES = tuple(f"n{i}" for i in range(8))
NAMESPACES = ("default", "other")


class Asks(NamedTuple):
    """What a pod asks of other pods; a term is the app, the topology key, and all namespaces."""

    near: tuple[tuple[str, str, bool], ...] = ()
    away: tuple[tuple[str, str, bool], ...] = ()
    spread: tuple[tuple[str, str, int, int], ...] = ()
    """The app, the topology key, the skew and the least number of domains."""
    ports: tuple[tuple[str, int], ...] = ()
    honors_taints: bool = False


NOTHING = Asks()


def selector(app: str) -> dict[str, Any]:
    return {"matchLabels": {"app": app}}


def affinity(asks: Asks) -> dict[str, Any]:
    def terms(written: tuple[tuple[str, str, bool], ...]) -> dict[str, Any]:
        return {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": selector(app), "topologyKey": key}
                | ({"namespaceSelector": {"matchLabels": {"team": "x"}}} if wide else {})
                for app, key, wide in written
            ]
        }

    found = {"podAffinity": terms(asks.near)} if asks.near else {}
    return found | ({"podAntiAffinity": terms(asks.away)} if asks.away else {})


def spreads(asks: Asks) -> list[dict[str, Any]]:
    return [
        {
            "maxSkew": skew,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": selector(app),
            "nodeTaintsPolicy": "Honor" if asks.honors_taints else "Ignore",
        }
        | ({"minDomains": domains} if domains > 1 else {})
        for app, key, skew, domains in asks.spread
    ]


class World(HistoryWorld):
    """A cluster of three zones and a node without one.

    Parameters
    ----------
    percentage, absolute
        Arguments of DefaultPreemption: how many candidates are enough.
    everywhere
        Whether nominated pods count on all nodes.
    """

    def __init__(
        self, percentage: int = 100, absolute: int = 1, *, everywhere: bool = True
    ) -> None:
        super().__init__(percentage, absolute)
        self.snapshot.nominated_everywhere = everywhere
        self.together = self.cycle(reuse=True)
        self.one_by_one = self.cycle(OneByOne, reuse=False)
        for name in NAMESPACES:
            labels = {"team": "x"} if name == "other" else {}
            written = {"metadata": {"name": name, "labels": labels}}
            self.snapshot.listers.namespaces.put(from_dict(Namespace, written))

    def node(self, name: str, cpu: int, *, tainted: bool = False) -> None:
        number = int(name[1:])
        labels = {ZONE: f"z{number % 3}"} if number != 7 else {}
        taints = [{"key": "t", "effect": "NoSchedule"}] if tainted else []
        self.snapshot.table.add_node(
            node(name, cpu=str(cpu), pods="6", labels=labels, taints=taints)
        )

    def pod(
        self,
        cpu: int,
        priority: int,
        app: str,
        asks: Asks,
        *,
        namespace: str = "default",
        started: int | None = -1,
    ) -> PodInfo:
        self.serial += 1
        made = typed_pod(
            f"p{self.serial}",
            namespace=namespace,
            cpu=str(cpu),
            labels={"app": app, **({"a": "x"} if cpu == 1 else {})},
            priority=priority,
            affinity=affinity(asks),
            topologySpreadConstraints=spreads(asks),
        )
        if asks.ports:
            ports = [
                {"containerPort": port, "hostPort": port, "hostIP": address}
                for address, port in asks.ports
            ]
            containers = [msgspec.to_builtins(made.spec.containers[0]) | {"ports": ports}]
            raw = msgspec.to_builtins(made)
            raw["spec"]["containers"] = containers
            made = from_dict(type(made), raw)
        at = None if started is None else rfc3339(self.clock.now_ns() + started * NS_PER_SECOND)
        status = msgspec.structs.replace(made.status, start_time=at)
        return PodInfo(msgspec.structs.replace(made, status=status))

    def budget(self, allowed: int) -> None:
        self.snapshot.listers.pod_disruption_budgets.put(budget_of(0, Budget("a", allowed)))

    def decide_eviction(self, index: int) -> None:
        """Let the eviction of one of the pods be decided, and not shown yet."""
        if self.placed:
            uid = self.placed[index % len(self.placed)]
            self.evictions.requested = {*self.evictions.requested, uid}

    def preempt(self, info: PodInfo, *, follow: bool) -> None:
        self.decide_alike(info, (self.one_by_one, self.together), follow=follow)


keys = st.sampled_from([ZONE, ZONE, HOSTNAME, HOSTNAME, "missing"])
domain_keys = st.sampled_from([ZONE, ZONE, HOSTNAME])
apps = st.sampled_from(["web", "web", "db", "none"])
terms = st.lists(st.tuples(apps, keys, st.booleans()), max_size=2).map(tuple)
constraints = st.tuples(apps, domain_keys, st.integers(1, 2), st.sampled_from([1, 1, 3, 9]))
asking = st.builds(
    Asks,
    near=st.one_of(st.just(()), st.just(()), terms),
    away=st.one_of(st.just(()), st.just(()), terms),
    spread=st.lists(constraints, max_size=2, unique_by=lambda each: each[1]).map(tuple),
    ports=st.sampled_from([(), (), (("", 80),), (("10.0.0.1", 80),), (("10.0.0.2", 80), ("", 81))]),
    honors_taints=st.booleans(),
)
residents = st.tuples(
    st.integers(1, 2),
    st.integers(-1, 2),
    apps,
    st.one_of(st.just(NOTHING), st.just(NOTHING), asking),
    st.sampled_from(["default", "default", "other"]),
)
preemptors = st.tuples(
    st.integers(1, 3),
    st.integers(1, 3),
    apps,
    asking,
    st.sampled_from(["default", "default", "other"]),
)
names = st.sampled_from(NODES)
steps = st.one_of(
    st.tuples(st.just("preempt"), preemptors, st.booleans()),
    st.tuples(st.just("preempt"), preemptors, st.just(True)),
    st.tuples(st.just("place"), names, residents),
    st.tuples(st.just("nominate"), names, preemptors),
    st.tuples(st.just("take away"), st.integers(0, 99)),
    st.tuples(st.just("begin leaving"), st.integers(0, 99)),
    st.tuples(st.just("decide eviction"), st.integers(0, 99)),
    st.tuples(st.just("node"), names, st.integers(2, 5), st.booleans()),
    st.tuples(st.just("budget"), st.integers(0, 2)),
)


def made(world: World, what: tuple[Any, ...], *, started: int | None = -1) -> PodInfo:
    cpu, priority, app, asks, namespace = what
    return world.pod(cpu, priority, app, asks, namespace=namespace, started=started)


def apply(world: World, step: tuple[Any, ...]) -> None:
    what, *args = step
    if what == "preempt":
        world.preempt(made(world, args[0], started=None), follow=args[1])
    elif what == "place":
        world.place(args[0], made(world, args[1]))
    elif what == "nominate":
        world.nominate(args[0], made(world, args[1], started=None))
    elif what == "take away":
        world.take_away(*args)
    elif what == "begin leaving":
        world.begin_leaving(*args)
    elif what == "decide eviction":
        world.decide_eviction(*args)
    elif what == "node":
        world.node(args[0], args[1], tainted=args[2])
    else:
        world.budget(*args)


@settings(max_examples=120, deadline=None)
@given(
    everywhere=st.booleans(),
    percentage=st.sampled_from([0, 50, 100]),
    absolute=st.sampled_from([1, 3]),
    filling=st.lists(residents, min_size=2 * len(NODES), max_size=2 * len(NODES)),
    history=st.lists(steps, max_size=8),
    wave=st.lists(preemptors, min_size=4, max_size=8),
)
def test_decisions_equal_those_of_rows_tried_one_by_one(
    everywhere: bool,
    percentage: int,
    absolute: int,
    filling: list[tuple[Any, ...]],
    history: list[tuple[Any, ...]],
    wave: list[tuple[Any, ...]],
) -> None:
    world = World(percentage, absolute, everywhere=everywhere)
    for name in NODES:
        world.node(name, 3)
    for index, each in enumerate(filling):
        started = -1 if index % 3 else None
        world.place(NODES[index % len(NODES)], made(world, each, started=started))
    for step in history:
        apply(world, step)
    for index, preemptor in enumerate(wave):
        apply(world, ("preempt", preemptor, index % 2 == 0))


@contextmanager
def tried_alone() -> Iterator[list[int]]:
    """Note the rows that are tried one by one."""
    rows: list[int] = []
    try_one = DryRuns._try_one

    def tried(self: DryRuns, row: int) -> Any:
        rows.append(row)
        return try_one(self, row)

    with mock.patch.object(DryRuns, "_try_one", tried):
        yield rows


WEB_AWAY = Asks(away=(("web", HOSTNAME, False),))
KINDS = {
    "anti-affinity of the preemptor": ("db", WEB_AWAY, "web", NOTHING, 2),
    "anti-affinity of victims": ("web", NOTHING, "db", WEB_AWAY, 2),
    "affinity to the victims' zone": ("db", Asks(near=(("web", ZONE, False),)), "web", NOTHING, 1),
    "hard spread over hosts": ("web", Asks(spread=(("web", HOSTNAME, 1, 1),)), "web", NOTHING, 1),
    "hard spread over zones": ("db", Asks(spread=(("web", ZONE, 9, 1),)), "web", NOTHING, 1),
    "a host port": ("db", Asks(ports=(("", 80),)), "web", Asks(ports=(("10.0.0.1", 80),)), 1),
}


@pytest.mark.parametrize(
    ("app", "asks", "resident", "residents_ask", "victims"), KINDS.values(), ids=KINDS
)
def test_no_row_is_tried_alone(
    app: str, asks: Asks, resident: str, residents_ask: Asks, victims: int
) -> None:
    world = World()
    for name in NODES[:6]:
        world.node(name, 4)
        for priority in (0, 1):
            asked = NOTHING if residents_ask.ports and priority else residents_ask
            world.place(name, world.pod(2, priority, resident, asked))
    with tried_alone() as rows:
        decision = world.together.decide(world.pod(2, 3, app, asks))
    assert rows == []
    assert len(decision.victims) == victims


def test_rows_that_wait_for_nominated_pods_are_tried_at_once() -> None:
    """The second search counts nominated pods as placed, and evicts fewer pods."""
    world = World()
    asks = Asks(spread=(("web", ZONE, 1, 1),))
    for name in NODES[:3]:
        world.node(name, 4)
        for _ in range(2):
            world.place(name, world.pod(2, 0, "db", NOTHING))
    world.place("n0", world.pod(0, 3, "web", NOTHING))
    for name in NODES[1:3]:
        world.nominate(name, world.pod(2, 3, "web", asks))
    preemptor = world.pod(2, 3, "web", asks)
    world.preempt(preemptor, follow=False)
    with tried_alone() as rows:
        decision = world.together.decide(preemptor)
    assert rows == []
    assert decision.nomination is not None
    assert decision.nomination.node_name == "n0"
    assert len(decision.victims) == 1


def test_a_pod_whose_eviction_is_decided_is_not_taken_off_twice() -> None:
    """The trials of spread do not count such a pod, wherever it is."""
    world = World()
    for name in NODES[:3]:
        world.node(name, 3)
    for name in NODES[1:3]:
        world.place(name, world.pod(3, 5, "db", NOTHING))
    world.place("n0", world.pod(1, 5, "web", NOTHING))
    world.place("n0", world.pod(2, 0, "web", NOTHING))
    world.decide_eviction(-1)
    preemptor = world.pod(2, 3, "web", Asks(spread=(("web", ZONE, 1, 1),)))
    world.preempt(preemptor, follow=False)
    assert world.together.decide(preemptor).victims == ()
