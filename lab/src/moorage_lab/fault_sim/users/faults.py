"""Faults of a script: connections, processes, clocks and the server."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.network_faults import WIRE_FAULTS, WireFault
from moorage_lab.fault_sim.users.plot import Maker, Plot

PROGRAMS = ("controllers", "nodes")


def _wire(plot: Plot) -> None:
    rng = plot.rng
    process = plot.a_scheduler() if rng.random() < 0.8 else rng.choice(PROGRAMS)
    plot.acts.append(
        acts.Disturb(
            at=plot.now,
            process=process,
            fault=rng.choice(WIRE_FAULTS),
            rate=rng.choice((0.1, 0.3, 1.0)),
            seconds=rng.uniform(0.5, 20),
        )
    )


def _some_steps(plot: Plot) -> int:
    """Draw a number of steps: none, some of what is under way, or up to ten seconds of them."""
    return plot.rng.choice((0, plot.rng.randrange(60), plot.rng.randrange(300)))


def _stop(plot: Plot) -> None:
    seconds = plot.rng.choice((0.01, 1.0, 5.0, 20.0, 120.0))
    plot.acts.append(
        acts.Stop(
            at=plot.now,
            process=plot.a_scheduler(),
            seconds=seconds,
            steps=_some_steps(plot),
            asleep=plot.rng.random() < 0.4,
        )
    )


def _kill(plot: Plot) -> None:
    signal: Literal["KILL", "TERM"] = "KILL" if plot.rng.random() < 0.5 else "TERM"
    seconds = plot.rng.uniform(0.1, 10)
    plot.acts.append(
        acts.Kill(
            at=plot.now,
            process=plot.a_scheduler(),
            signal=signal,
            seconds=seconds,
            steps=_some_steps(plot),
        )
    )


def _jump(plot: Plot) -> None:
    seconds = plot.rng.choice((-30.0, -2.0, 2.0, 30.0))
    plot.acts.append(acts.Jump(at=plot.now, process=plot.a_scheduler(), seconds=seconds))


def _depose(plot: Plot) -> None:
    """Take the lease away from a scheduler, at any await."""
    process, steps = plot.a_scheduler(), _some_steps(plot)
    plot.acts.append(acts.Depose(at=plot.now, process=process, steps=steps))


def _misbehave(plot: Plot) -> None:
    """Let plugins and extenders be worse than usual for a while, or well."""
    rate, seconds = plot.rng.choice((0.0, 2.0, 4.0)), plot.rng.uniform(2, 20)
    plot.acts.append(acts.Misbehave(at=plot.now, rate=rate, seconds=seconds))


def _outage(plot: Plot) -> None:
    seconds = plot.rng.uniform(0.1, 30)
    plot.acts.append(acts.Outage(at=plot.now, seconds=seconds, forgets=plot.rng.random() < 0.5))


def _blind(plot: Plot) -> None:
    """Keep one scheduler from seeing what users do, until the server has forgotten it."""
    process, seconds = plot.a_scheduler(), plot.rng.uniform(2, 8)
    plot.acts += [
        acts.Disturb(at=plot.now, process=process, fault="refused", rate=1.0, seconds=seconds),
        acts.Outage(at=plot.now, seconds=0.0, forgets=False),
        acts.Outage(at=plot.now + seconds - 0.1, seconds=0.0, forgets=True),
    ]


def _agents(plot: Plot) -> None:
    """Stop or kill the node agents; after a minute their nodes count as unreachable."""
    rng, at = plot.rng, plot.now
    seconds = rng.choice((1.0, 10.0, 80.0))
    if rng.random() < 0.5:
        plot.acts.append(acts.Stop(at=at, process="nodes", seconds=seconds))
    else:
        plot.acts.append(acts.Kill(at=at, process="nodes", signal="KILL", seconds=seconds))


def _deaf(plot: Plot) -> None:
    """Lose the answers of a scheduler's calls while its watches are late: it knows by neither."""
    process, seconds = plot.a_scheduler(), plot.rng.uniform(2, 10)
    faults: tuple[WireFault, WireFault] = ("answer-lost", "watch-slow")
    plot.acts += [
        acts.Disturb(at=plot.now, process=process, fault=fault, rate=1.0, seconds=seconds)
        for fault in faults
    ]


def _stale(plot: Plot) -> None:
    """Let a program list everything again, and let the lists be old."""
    process, seconds = plot.a_scheduler(), plot.rng.uniform(5, 40)
    if plot.rng.random() < 0.2:
        process = plot.rng.choice(PROGRAMS)
    plot.acts += [
        acts.Disturb(at=plot.now, process=process, fault="list-stale", rate=1.0, seconds=seconds),
        acts.Outage(at=plot.now, seconds=0.0, forgets=True),
    ]


def _crash(plot: Plot) -> None:
    """Let the API server die in a write, or by an error of its disk."""
    rng = plot.rng
    plot.acts.append(
        acts.Crash(
            at=plot.now,
            how=rng.choice(("kill", "torn", "broken")),
            power=rng.random() < 0.5,
            calls=rng.randrange(12),
            seconds=rng.uniform(0.1, 10),
        )
    )


def _full_disk(plot: Plot) -> None:
    seconds, room = plot.rng.uniform(1, 20), plot.rng.choice((0, 4000, 40000))
    plot.acts.append(acts.FullDisk(at=plot.now, room_bytes=room, seconds=seconds))


FAULT_KINDS: Mapping[str, tuple[Maker, ...]] = MappingProxyType(
    {
        "wire": (_wire, _wire, _wire, _wire, _deaf),
        "stop": (_stop,),
        "kill": (_kill,),
        "jump": (_jump,),
        "lease": (_depose,),
        "outage": (_outage,),
        "blind": (_blind, _blind),
        "agents": (_agents, _agents, _agents),
        "stale": (_stale,),
        "plugins": (_misbehave,),
        "disk": (_crash, _crash, _crash, _crash, _full_disk),
    }
)
"""The faults of each kind; a kind with several is drawn more often."""
