"""The scenarios that a simulation can be drawn from: users, schedulers and faults."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import msgspec

from moorage.base.errors import UsageError
from moorage.base.rng import Streams
from moorage_lab.fault_sim.acts import Script
from moorage_lab.fault_sim.situations import (
    delayed_steps,
    late_failures,
    neighbours,
    new_nodes,
    nodes,
    pod_groups,
    priorities,
    quotas,
    storage,
    storage_changes,
)
from moorage_lab.fault_sim.situations.situation import Declaration
from moorage_lab.fault_sim.users.combined import COMBINED, create_offers
from moorage_lab.fault_sim.users.faults import FAULT_KINDS
from moorage_lab.fault_sim.users.groups import GROUPS, TEAMS
from moorage_lab.fault_sim.users.operations import NODES, OPERATIONS
from moorage_lab.fault_sim.users.plot import Maker, Mix, Plot
from moorage_lab.fault_sim.users.pods import PODS
from moorage_lab.fault_sim.users.quotas import QUOTAS, create_namespaces
from moorage_lab.fault_sim.users.sets import SETS

_PLAIN = (*PODS, *SETS, *NODES)

USERS: Mapping[str, tuple[Maker, ...]] = MappingProxyType(
    {
        "default": (*_PLAIN, *GROUPS),
        "unscored": (*_PLAIN, *GROUPS),
        "coscheduling": (*_PLAIN, *TEAMS),
        "gangs at permit": (*_PLAIN, *GROUPS),
        "teams at permit": (*_PLAIN, *TEAMS),
        "quotas": (*_PLAIN, *QUOTAS),
        "broken plugin": (*_PLAIN, *GROUPS),
        "delayed step": (*_PLAIN, *GROUPS),
        "scores": (*_PLAIN, *GROUPS),
        "extender": _PLAIN,
        "extenders": _PLAIN,
    }
)
"""The doings of users, by the configuration of the schedulers."""

_USUAL = (*nodes.WAITS, *neighbours.WAITS, *new_nodes.WAITS, *priorities.WAITS)
_STORAGE = (*storage.WAITS, *storage_changes.WAITS)
_GROUPS = (*pod_groups.GANG_WAITS, *pod_groups.GANGS_IN_VAIN)
_FAILURES = tuple(late_failures.FAILURES)
_DELAYED_STEPS = (
    *delayed_steps.FAILURES,
    *storage.DELAYED_STEPS,
    *storage_changes.DELAYED_STEPS,
)

SITUATIONS: Mapping[str, tuple[Declaration, ...]] = MappingProxyType(
    {
        "default": (*_USUAL, *_STORAGE, *_GROUPS, *_FAILURES, *pod_groups.FAILURES),
        "coscheduling": (*_USUAL, *pod_groups.TEAM_WAITS, *_FAILURES),
        "delayed step": (*_USUAL, *_FAILURES, *_DELAYED_STEPS, *_DELAYED_STEPS),
        "unscored": (*_USUAL, *storage.WAITS, *nodes.UNSCORED),
        "scores": (*_USUAL, *_STORAGE),
        "quotas": (*_USUAL, *quotas.WAITS),
        "broken plugin": (*_USUAL, *storage.WAITS, *pod_groups.GANG_WAITS),
        "extender": (*_USUAL, *storage.WAITS),
        "extenders": (*_USUAL, *storage.WAITS),
    }
)
"""The situations that a run draws from, by the configuration of the schedulers."""

_ALONE = (*nodes.ALONE, *neighbours.ALONE, *new_nodes.ALONE, *storage_changes.LATE_WATCHES)

ONE_BY_ONE: tuple[tuple[str, Declaration], ...] = tuple(
    (setup, situation)
    for setup, situations in (
        ("default", (*SITUATIONS["default"], *_ALONE)),
        ("coscheduling", pod_groups.TEAM_WAITS),
        ("gangs at permit", pod_groups.GANG_WAITS),
        ("teams at permit", pod_groups.TEAM_WAITS),
        ("delayed step", _DELAYED_STEPS),
        ("unscored", nodes.UNSCORED),
        ("quotas", quotas.WAITS),
        ("delayed step", delayed_steps.RELOADS),
        ("default", delayed_steps.RELOADS_WITH_PLUGIN),
    )
    for situation in situations
)
"""Every situation once with each configuration in which it is played alone."""


FOUNDERS: Mapping[str, tuple[Maker, ...]] = MappingProxyType({"quotas": (create_namespaces,)})
"""The makers that act once, at the start, by the configuration of the schedulers."""


def _few(seed: int, count: int) -> tuple[str, tuple[Declaration, ...]]:
    """Return the situations of a seed, with their configuration; seeds in a row have all."""
    # A hunt plays this scenario every second time.
    turn, number = divmod(seed // 2, len(few_in_turn(0, count)))
    return few_in_turn(turn, count)[number]


def few_in_turn(turn: int, count: int) -> list[tuple[str, tuple[Declaration, ...]]]:
    """Draw sets of at most so many situations that have one configuration.

    Each situation is in one set. One that disturbs others is alone.

    Parameters
    ----------
    turn
        Decides which situations are together.
    count
        Number of situations in a set.
    """
    rng = Streams(turn).stream("few")
    sets: list[tuple[str, tuple[Declaration, ...]]]
    sets = [(setup, (each,)) for setup, each in ONE_BY_ONE if each.disturbs]
    for setup in dict.fromkeys(setup for setup, _ in ONE_BY_ONE):
        quiet = [each for name, each in ONE_BY_ONE if name == setup and not each.disturbs]
        drawn = rng.sample(quiet, len(quiet))
        sets += [(setup, tuple(drawn[at : at + count])) for at in range(0, len(drawn), count)]
    return rng.sample(sets, len(sets))


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """The parts of which a run of a seed consists.

    Parameters
    ----------
    summary
        One line about it.
    replicas, nodes, steps
        Schedulers, nodes at the start, and acts of users.
    waits
        Pods that wait for one thing each, which comes at the end.
    looks
        Whether four of five scripts look at the cluster after each of these things.
    few
        Whether nothing disturbs these pods, and they have a configuration that one of them needs.
    faults
        Kinds of faults, keys of `FAULT_KINDS`.
    rate
        Faults per act of a user.
    setups
        Configurations of the schedulers, one of which is drawn.
    more
        What users do besides.
    founders
        What is done once, before everything else.
    rest_seconds
        Time without acts at the end.
    """

    summary: str
    replicas: int = 1
    nodes: int = 5
    steps: int = 60
    waits: int = 0
    looks: bool = False
    few: bool = False
    faults: tuple[str, ...] = ()
    rate: float = 0.0
    setups: tuple[str, ...] = ("default", "broken plugin", "default", "coscheduling")
    more: tuple[Maker, ...] = ()
    founders: tuple[Maker, ...] = ()
    rest_seconds: float = 150.0

    def script(self, seed: int) -> Script:
        """Return the script of a seed."""
        setup = self.setups[seed % len(self.setups)]
        waits = SITUATIONS[setup]
        if self.few:
            setup, waits = _few(seed, self.waits)
        mix = Mix(
            nodes=self.nodes,
            steps=self.steps,
            replicas=self.replicas,
            users=(*USERS[setup], *self.more),
            faults=[each for kind in self.faults for each in FAULT_KINDS[kind]],
            rate=self.rate,
            waits=self.waits,
            looks=self.looks and (self.few or seed % 5 > 0),
            wait_kinds=waits,
            founders=(*FOUNDERS.get(setup, ()), *self.founders),
            setup=setup,
            rest_seconds=self.rest_seconds,
        )
        script = Plot(seed, mix).script()
        return msgspec.structs.replace(script, on_disk="disk" in self.faults)


_FAULTS = ("wire", "stop", "kill", "jump", "lease", "outage", "blind")

SCENARIOS: Mapping[str, Scenario] = MappingProxyType(
    {
        "calm": Scenario(
            summary="One scheduler, many users, no faults.",
            waits=3,
            setups=("default", "broken plugin", "unscored", "default", "coscheduling"),
        ),
        "waits": Scenario(
            summary="One scheduler; pods that wait for one thing each, and get it.",
            nodes=1,
            steps=4,
            waits=16,
            looks=True,
            setups=("default", "delayed step", "default", "coscheduling"),
            rest_seconds=60.0,
        ),
        "few": Scenario(
            summary="One scheduler; a few pods wait for one thing each, and nothing else happens.",
            nodes=1,
            steps=0,
            waits=6,
            looks=True,
            few=True,
            rest_seconds=40.0,
        ),
        "combined": Scenario(
            summary="One scheduler, no faults; pods combine volumes, devices, places and groups.",
            nodes=4,
            steps=40,
            setups=("default", "scores", "default", "delayed step", "broken plugin"),
            more=COMBINED * 4,
            founders=(create_offers,),
            rest_seconds=60.0,
        ),
        "late": Scenario(
            summary="Two schedulers, every fault; pods wait for one thing each, and get it.",
            replicas=2,
            nodes=2,
            steps=12,
            waits=10,
            setups=("default", "broken plugin", "delayed step", "coscheduling"),
            faults=_FAULTS,
            rate=0.6,
        ),
        "wire": Scenario(
            summary="One scheduler on a connection that loses, delays and breaks.",
            waits=3,
            faults=("wire", "outage", "blind", "stale"),
            rate=0.5,
        ),
        "leaders": Scenario(
            summary="Three schedulers that are stopped and killed, and whose clocks jump.",
            replicas=3,
            waits=3,
            faults=("stop", "kill", "jump", "lease"),
            rate=0.4,
        ),
        "quotas": Scenario(
            summary="Two schedulers and every fault; namespaces with quotas share the nodes.",
            replicas=2,
            waits=5,
            faults=_FAULTS,
            rate=0.2,
            setups=("quotas",),
        ),
        "operations": Scenario(
            summary="Two schedulers; drains, autoscaling, reloads, and agents that die.",
            replicas=2,
            waits=3,
            faults=(*_FAULTS, "agents", "plugins"),
            rate=0.2,
            setups=("default", "broken plugin"),
            more=OPERATIONS,
        ),
        "extenders": Scenario(
            summary="Two schedulers with HTTP extenders that are slow, lie and break.",
            replicas=2,
            waits=5,
            faults=(*_FAULTS, "plugins"),
            rate=0.2,
            setups=("extender", "extenders"),
        ),
        "disk": Scenario(
            summary="Two schedulers; an API server on a disk that fills, tears and fails.",
            replicas=2,
            waits=3,
            faults=(*_FAULTS, "stale", "disk", "disk"),
            rate=0.2,
        ),
        "mixed": Scenario(
            summary="Three schedulers and every fault.",
            replicas=3,
            waits=3,
            faults=_FAULTS,
            rate=0.5,
        ),
    }
)


_LONG = (
    "calm",
    "combined",
    "waits",
    "late",
    "combined",
    "waits",
    "wire",
    "combined",
    "waits",
    "leaders",
    "late",
    "combined",
    "mixed",
    "waits",
    "quotas",
    "operations",
    "extenders",
    "disk",
)

IN_TURN = ("few", *(name for long in _LONG for name in (long, "few")))
"""The scenarios of a hunt through all; short ones that find much come more often.

Their number has no divisor in common with the numbers of set-ups, so each meets each.
"""


def scenario(name: str) -> Scenario:
    """Return a scenario by its name.

    Raises
    ------
    UsageError
        There is no such scenario.
    """
    chosen = SCENARIOS.get(name)
    if chosen is None:
        raise UsageError(f"no scenario {name!r}; there are {', '.join(SCENARIOS)}")
    return chosen
