"""A walk over the awaits of a scheduler: a small script is played once for each of its steps.

A step of a program is the code from one await to the next. The first run counts the steps of the
leader, and notes at which awaits of the source its tasks stand between two steps. Each further run
lets one thing happen after one of these steps: the leader is killed, stopped or deposed, or a pod
is deleted. Every invariant must hold at the end of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Literal, get_args

import msgspec

from moorage.base.errors import UsageError
from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.acts import AnyAct, Script
from moorage_lab.fault_sim.fault_run import Outcome, play
from moorage_lab.fault_sim.places import place_of
from moorage_lab.fault_sim.scenarios import ONE_BY_ONE
from moorage_lab.fault_sim.users.plot import Mix, Plot

WalkAct = Literal["kill", "end", "stop", "depose", "delete"]
"""What happens after a step: SIGKILL, SIGTERM, SIGSTOP for longer than the lease, the loss of the
lease, or the deletion of a pod by a user."""

WALK_ACTS: tuple[WalkAct, ...] = get_args(WalkAct)

_STOPPED_SECONDS = 20.0  # longer than the lease
_AGAIN_SECONDS = 1.0
_SETTLING_SECONDS = 12.0  # steps of the rest are not walked
_REST_SECONDS = 60.0  # the next leader waits for the end of a lease, and works


class Scene(msgspec.Struct, frozen=True):
    """A small script: a few pods that wait for one thing each, and get it.

    Parameters
    ----------
    situations
        Names of the things that the pods wait for.
    setup
        Configuration of the schedulers.
    """

    situations: tuple[str, ...]
    setup: str = "default"


SCENES: Mapping[str, Scene] = MappingProxyType(
    {
        "binding": Scene(("one_after_another", "gate_opens")),
        "volumes": Scene(("two_for_one_volume",)),
        "devices": Scene(("device_goes_free",)),
        "preemption": Scene(("victim", "claimed_by_another")),
        "gang": Scene(("room_for_all", "member_comes")),
        "team": Scene(("teammate_comes",), setup="coscheduling"),
        "quota": Scene(("bound_is_raised",), setup="quotas"),
        "delayed-step": Scene(("delayed_step_fails",), setup="delayed step"),
    }
)
"""The scripts that are walked, by name; each has two schedulers."""


def scene(name: str, seed: int) -> Script:
    """Return the script of a scene.

    Raises
    ------
    UsageError
        There is no such scene.
    """
    chosen_scene = SCENES.get(name)
    if chosen_scene is None:
        raise UsageError(f"no scene {name!r}; there are {', '.join(SCENES)}")
    names = chosen_scene.situations
    situations = {each.name: each for _, each in ONE_BY_ONE if each.name in names}
    mix = Mix(
        nodes=1,
        steps=0,
        replicas=2,
        users=(),
        waits=len(situations),
        wait_kinds=[*situations.values()],
        setup=chosen_scene.setup,
        rest_seconds=_REST_SECONDS,
    )
    script = Plot(seed, mix).script()
    end = max(act.at for act in script.acts) + _SETTLING_SECONDS
    nothing = acts.Delete(at=end, kind="Pod", name="nobody")
    return msgspec.structs.replace(script, acts=[*script.acts, nothing])


class Stop(msgspec.Struct, frozen=True):
    """A place of a walk.

    Parameters
    ----------
    steps
        Steps that the scheduler has run.
    place
        The await at which the task of the last step stands then: ``file:line``, or what called
        back.
    """

    steps: int
    place: str


class Walk:
    """The runs of a walk, one after another.

    Parameters
    ----------
    script
        What is walked.
    act
        What happens after each step.
    each
        Steps at most that are walked for one await of the source, spread evenly; None for all.

    Attributes
    ----------
    process
        The scheduler: the one that leads first.
    steps
        Number of its steps in the first run.
    places
        Number of different awaits of the source at which its tasks stood, with those that led
        there.
    stops
        The steps that are walked.
    """

    def __init__(self, script: Script, act: WalkAct, *, each: int | None = None) -> None:
        self._script = script
        self._act = act
        places: dict[str, list[str]] = {}
        outcome = play(
            script, on_step=lambda life, ran: places.setdefault(life, []).append(place_of(ran))
        )
        life = _first_leader(outcome)
        self.process = life.partition(".")[0]
        stands = places[life]
        self.steps = len(stands)
        self.places = len(set(stands))
        self.stops = tuple(_chosen(stands, each))
        self._pods = [
            creation.object["metadata"]
            for creation in script.acts
            if isinstance(creation, acts.Create) and creation.object["kind"] == "Pod"
        ]
        self._left = iter(self.stops)

    def next(self) -> Script | None:
        """Return the next script, None at the end."""
        stop = next(self._left, None)
        return None if stop is None else self.script_at(stop)

    def learn(self, script: Script, outcome: Outcome) -> int:
        """Return how much of an outcome is new: a walk does not ask."""
        del script, outcome
        return 0

    def __len__(self) -> int:
        """Return the number of steps that are walked."""
        return len(self.stops)

    def script_at(self, stop: Stop) -> Script:
        """Return the script in which the act happens after some steps."""
        with_fault = [self._at(stop.steps), *self._script.acts]
        return msgspec.structs.replace(self._script, acts=with_fault)

    @staticmethod
    def steps_of(script: Script) -> int:
        """Return after how many steps of the scheduler a script of a walk strikes."""
        first = script.acts[0]
        assert isinstance(first, acts.Kill | acts.Stop | acts.Depose | acts.Delete)
        return first.steps

    def _at(self, steps: int) -> AnyAct:
        process = self.process
        match self._act:
            case "kill":
                return acts.Kill(
                    at=0.0, process=process, signal="KILL", seconds=_AGAIN_SECONDS, steps=steps
                )
            case "end":
                return acts.Kill(
                    at=0.0, process=process, signal="TERM", seconds=_AGAIN_SECONDS, steps=steps
                )
            case "stop":
                return acts.Stop(at=0.0, process=process, seconds=_STOPPED_SECONDS, steps=steps)
            case "depose":
                return acts.Depose(at=0.0, process=process, steps=steps)
            case "delete":
                pod = self._pods[steps % len(self._pods)]
                return acts.Delete(
                    at=0.0,
                    kind="Pod",
                    name=pod["name"],
                    namespace=pod["namespace"],
                    process=process,
                    steps=steps,
                )


def _first_leader(outcome: Outcome) -> str:
    """Return the life of the scheduler that wrote first."""
    for line in outcome.lines:
        _, who, *_ = line.split()
        if who.startswith("scheduler-") and "/api" in line:
            return who
    raise UsageError("no scheduler of the script writes anything")


def _chosen(places: list[str], each: int | None) -> Iterator[Stop]:
    """Yield every step, or some for each place: the first, the last and some between."""
    steps_by_place: dict[str, list[int]] = {}
    for number, place in enumerate(places, 1):
        steps_by_place.setdefault(place, []).append(number)
    chosen = {steps for numbers in steps_by_place.values() for steps in _spread(numbers, each)}
    for steps in sorted(chosen):
        yield Stop(steps, places[steps - 1])


def _spread(numbers: list[int], most: int | None) -> Iterable[int]:
    if most is None or len(numbers) <= most:
        return numbers
    if most == 1:
        return numbers[-1:]
    return [numbers[index * (len(numbers) - 1) // (most - 1)] for index in range(most)]
