"""A walk over the awaits of a scheduler, from its options to its report."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from moorage.base.clock import Clock
from moorage.base.errors import UsageError
from moorage_lab.fault_sim.acts import Script
from moorage_lab.fault_sim.hunt import hunt
from moorage_lab.fault_sim.walk import SCENES, WALK_ACTS, Walk, WalkAct, scene


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a walk over one script.

    Parameters
    ----------
    scene, act, process
        What was walked, what happened after a step, and the scheduler.
    runs, steps, awaits
        Steps that were walked, steps of the scheduler, and the different awaits among them.
    broken
        Each breach: the steps after which the act came, the invariant, and what was seen.
    """

    scene: str
    act: str
    process: str
    runs: int
    steps: int
    awaits: int
    broken: tuple[tuple[int, str, str], ...]

    @property
    def line(self) -> str:
        """The report in a line."""
        end = f"{len(self.broken)} breaches" if self.broken else "every invariant holds"
        return (
            f"{self.scene}, {self.act}: {self.runs} of {self.steps} steps of {self.process} at "
            f"{self.awaits} awaits; {end}"
        )


def scenes_of(name: str) -> Sequence[str]:
    """Return the scenes of an option; ``all`` for every one."""
    return tuple(SCENES) if name == "all" else (name,)


def acts_of(name: str) -> Sequence[WalkAct]:
    """Return the acts of an option; ``all`` for every one.

    Raises
    ------
    UsageError
        There is no such act.
    """
    if name == "all":
        return WALK_ACTS
    for act in WALK_ACTS:
        if act == name:
            return (act,)
    raise UsageError(f"no act {name!r}; there are {', '.join(WALK_ACTS)}, and all")


def walked(
    name: str, act: WalkAct, *, seed: int, each: int | None, jobs: int, clock: Clock
) -> tuple[Report, dict[int, Script]]:
    """Walk over one script; return the report, and what breaks something, by its steps."""
    walk = Walk(scene(name, seed), act, each=each)
    breaches: list[tuple[int, str, str]] = []
    broken: dict[int, Script] = {}
    for hunt_run in hunt(walk, jobs=jobs, clock=clock):
        steps = walk.steps_of(hunt_run.script)
        breaches += [(steps, breach.invariant, breach.text) for breach in hunt_run.outcome.breaches]
        if hunt_run.outcome.breaches:
            broken[steps] = hunt_run.script
    report = Report(
        scene=name,
        act=act,
        process=walk.process,
        runs=len(walk),
        steps=walk.steps,
        awaits=walk.places,
        broken=tuple(breaches),
    )
    return report, broken


def text(reports: Sequence[Report]) -> str:
    """Return the reports for people."""
    lines = [
        f"{each.scene}, {each.act}, after {steps} steps: {invariant}: {seen}"
        for each in reports
        for steps, invariant, seen in each.broken
    ]
    runs, steps = (sum(getattr(each, what) for each in reports) for what in ("runs", "steps"))
    end = f"{len(lines)} breaches" if lines else "every invariant holds"
    return "\n".join([*lines, f"{runs} of {steps} steps walked; {end}"])
