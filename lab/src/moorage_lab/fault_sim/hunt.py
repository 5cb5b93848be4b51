"""The search for a script that breaks something: seeds, steered towards what was not covered."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from typing import Protocol

import msgspec

from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.rng import Random, Streams
from moorage_lab.fault_sim.acts import Script
from moorage_lab.fault_sim.fault_run import Outcome, play
from moorage_lab.fault_sim.scenarios import Scenario

# Scripts that led somewhere new, kept to be varied; a guess.
_PRODUCTIVE_MOST = 200


class HuntRun(msgspec.Struct, frozen=True, kw_only=True):
    """A script that was played.

    Parameters
    ----------
    script, outcome
        What was played, and how it ended; without its trace.
    new
        How many things it covered that no script before had covered.
    """

    script: Script
    outcome: Outcome
    new: int


class Chooser(Protocol):
    """Gives the scripts that are played, one after another."""

    def next(self) -> Script | None:
        """Return the next script, None at the end."""

    def learn(self, script: Script, outcome: Outcome) -> int:
        """Take in what a script covered; return how much of it is new."""


class Steering:
    """The choice of the next script: fresh seeds, and variations of scripts that led somewhere new.

    Parameters
    ----------
    scenarios
        What fresh scripts are drawn from, in turn.
    first_seed
        The first seed; the following count up.
    """

    def __init__(self, scenarios: Sequence[Scenario], first_seed: int) -> None:
        self._scenarios = scenarios
        self._seed = first_seed
        self._rng = Streams(first_seed).stream("steering")
        self._productive: list[Script] = []
        self.covered: set[str] = set()

    def next(self) -> Script:
        """Return the next script."""
        seed = self._seed
        self._seed += 1
        if self._productive and self._rng.random() < 0.5:
            return varied(self._rng.choice(self._productive), seed, self._rng)
        return self._scenarios[seed % len(self._scenarios)].script(seed)

    def learn(self, script: Script, outcome: Outcome) -> int:
        """Take in what a script covered; return how much of it is new."""
        new = len(outcome.covered - self.covered)
        if new:
            self.covered |= outcome.covered
            self._productive.append(script)
            del self._productive[:-_PRODUCTIVE_MOST]
        return new


def varied(script: Script, seed: int, rng: Random) -> Script:
    """Return a script whose acts come at other moments, some twice or not at all.

    Where the members of a group hold nodes at Permit, no act is left out: without the thing that
    they wait for, they would still hold them at the end.
    """
    acts = []
    whole = script.setup.endswith("at permit")
    for act in script.acts:
        draw = rng.random()
        if draw < 0.05 and not whole:
            continue
        moved = rng.uniform(-3, 3) if draw < 0.3 else 0.0
        acts.append(msgspec.structs.replace(act, at=max(1.0, act.at + moved)))
        if draw > 0.95:
            acts.append(msgspec.structs.replace(act, at=act.at + rng.uniform(0, 10)))
    return msgspec.structs.replace(script, seed=seed, acts=sorted(acts, key=lambda act: act.at))


def hunt(
    chooser: Chooser,
    *,
    jobs: int,
    clock: Clock,
    seconds: float | None = None,
    runs: int | None = None,
) -> Iterator[HuntRun]:
    """Play scripts, and yield each when it has ended.

    Parameters
    ----------
    chooser
        Gives the scripts.
    jobs
        Number of processes.
    clock, seconds
        No script is begun after so many seconds of this clock; None for no limit.
    runs
        Number of scripts; None for no limit.
    """
    end_ns = None if seconds is None else clock.monotonic_ns() + round(seconds * NS_PER_SECOND)
    with ProcessPoolExecutor(
        jobs,
        mp_context=multiprocessing.get_context("spawn"),
        initializer=_begin,
    ) as pool:
        running: dict[Future[bytes], Script] = {}
        begun = 0

        def more() -> bool:
            in_time = end_ns is None or clock.monotonic_ns() < end_ns
            return in_time and (runs is None or begun < runs)

        while True:
            while len(running) < jobs and more():
                script = chooser.next()
                if script is None:
                    runs = begun
                    break
                running[pool.submit(_play_encoded, msgspec.json.encode(script))] = script
                begun += 1
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            # In the order in which they were begun, whichever ended first.
            for future in [each for each in running if each in done]:
                script = running.pop(future)
                outcome = msgspec.json.decode(future.result(), type=Outcome)
                yield HuntRun(script=script, outcome=outcome, new=chooser.learn(script, outcome))


def _begin() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends the hunt


def _play_encoded(encoded: bytes) -> bytes:
    outcome = play(msgspec.json.decode(encoded, type=Script))
    return msgspec.json.encode(msgspec.structs.replace(outcome, lines=()))
