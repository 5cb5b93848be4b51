"""A hunt from its options to its report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from moorage.base.clock import NS_PER_SECOND, Clock
from moorage_lab.fault_sim.acts import Script
from moorage_lab.fault_sim.fault_run import play
from moorage_lab.fault_sim.hunt import HuntRun, Steering, hunt
from moorage_lab.fault_sim.scenarios import Scenario
from moorage_lab.fault_sim.shrink import OnTry, shrunk


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """An invariant that a hunt found broken.

    Parameters
    ----------
    invariant, text
        Its name, and what was seen first.
    seed
        Seed of the first script that breaks it.
    runs, seconds
        Runs and seconds until then.
    """

    invariant: str
    text: str
    seed: int
    runs: int
    seconds: float


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a hunt.

    Parameters
    ----------
    runs, acts, steps
        Scripts that were played, their acts, and the steps of all programs in them.
    seconds, simulated_seconds
        Time that passed, and time that passed in the clusters.
    covered
        Number of different things that happened.
    broken
        Each invariant that was broken, by the first script that broke it.
    """

    runs: int
    acts: int
    steps: int
    seconds: float
    simulated_seconds: float
    covered: int
    broken: tuple[Broken, ...]

    def report_text(self) -> str:
        """Return the report for people."""
        ratio = self.simulated_seconds / self.seconds if self.seconds else 0.0
        lines = [
            f"{self.runs} runs, {self.acts} acts and {self.steps} steps of programs in "
            f"{self.seconds:.0f} s; simulated time to real time {ratio:.0f}:1; {self.covered} "
            "different things covered"
        ]
        lines += [
            f"{each.invariant}: seed {each.seed}, after {each.runs} runs and "
            f"{each.seconds:.0f} s: {each.text}"
            for each in self.broken
        ]
        return "\n".join(lines if self.broken else [*lines, "every invariant holds"])


class Hunt:
    """A hunt under way.

    Parameters
    ----------
    scenarios, seed
        What is played, and the first seed.
    clock
        Real time.
    """

    def __init__(self, scenarios: Sequence[Scenario], seed: int, clock: Clock) -> None:
        self._steering = Steering(scenarios, seed)
        self._clock = clock
        self._begin_ns = clock.monotonic_ns()
        self._runs = 0
        self._acts = 0
        self._steps = 0
        self._simulated = 0.0
        self._broken: dict[str, Broken] = {}
        self._scripts: dict[str, Script] = {}

    @property
    def _seconds(self) -> float:
        return (self._clock.monotonic_ns() - self._begin_ns) / NS_PER_SECOND

    def run(self, *, jobs: int, seconds: float | None, runs: int | None) -> Iterator[HuntRun]:
        """Play scripts, and yield each that has ended."""
        for hunt_run in hunt(
            self._steering, jobs=jobs, clock=self._clock, seconds=seconds, runs=runs
        ):
            self._take_run(hunt_run)
            yield hunt_run

    def _take_run(self, hunt_run: HuntRun) -> None:
        self._runs += 1
        self._acts += len(hunt_run.script.acts)
        self._steps += hunt_run.outcome.steps
        self._simulated += hunt_run.outcome.seconds
        for breach in hunt_run.outcome.breaches:
            if breach.invariant not in self._broken:
                self._scripts[breach.invariant] = hunt_run.script
                self._broken[breach.invariant] = Broken(
                    invariant=breach.invariant,
                    text=breach.text,
                    seed=hunt_run.script.seed,
                    runs=self._runs,
                    seconds=self._seconds,
                )

    def script(self, broken: Broken) -> Script:
        """Return the first script that broke an invariant."""
        return self._scripts[broken.invariant]

    def shortened(self, broken: Broken, *, on_try: OnTry) -> Script:
        """Return a short script that still breaks an invariant; `on_try` is told of each try."""

        def breaks(script: Script) -> bool:
            return any(each.invariant == broken.invariant for each in play(script).breaches)

        return shrunk(self._scripts[broken.invariant], breaks, on_try=on_try)

    def report(self) -> Report:
        """Return the result so far."""
        return Report(
            runs=self._runs,
            acts=self._acts,
            steps=self._steps,
            seconds=self._seconds,
            simulated_seconds=self._simulated,
            covered=len(self._steering.covered),
            broken=tuple(self._broken.values()),
        )
