"""The plugins, where each runs, and what it costs: the answer of ``/moorage/v1/plugins``."""

from __future__ import annotations

from collections import defaultdict

import msgspec

from moorage.base.clock import Clock, rfc3339_micro
from moorage.framework.profile import Profile
from moorage.observe.plugin_facts import PluginFacts
from moorage.service.questions.question import Answer, Question, QuestionParameters
from moorage.service.scheduler import Scheduler


class PointCost(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The cost of a plugin at one extension point, in the attempts that were timed.

    Parameters
    ----------
    point
        The extension point.
    calls
        The calls that were timed: about one of ten.
    seconds
        What they took together, seconds.
    errors
        How many of them ended with an error.
    """

    point: str
    calls: int
    seconds: float
    errors: int


class RunningPlugin(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A plugin of the scheduler; its costs are of all profiles together.

    Parameters
    ----------
    name
        The plugin.
    costs
        What it cost, by extension point.
    """

    name: str
    costs: tuple[PointCost, ...]


class RunningProfile(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A profile, and which plugins it runs where.

    Parameters
    ----------
    scheduler_name
        The profile.
    points
        The names of its plugins by extension point, in order.
    weights
        The weights of its Score plugins.
    extenders
        Its extenders.
    """

    scheduler_name: str
    points: dict[str, tuple[str, ...]]
    weights: dict[str, int]
    extenders: tuple[str, ...]


class PluginsAnswer(Answer, frozen=True, kw_only=True, rename="camel"):
    """The plugins, where each runs, and what it costs.

    Parameters
    ----------
    profiles
        The profiles by name.
    plugins
        Every plugin of any profile, by name.
    """

    kind: str = "Plugins"
    profiles: tuple[RunningProfile, ...]
    plugins: tuple[RunningPlugin, ...]


def plugins_question(scheduler: Scheduler, clock: Clock) -> Question:
    """Return the question which plugins run where, and what each costs."""

    async def ask(parameters: QuestionParameters) -> PluginsAnswer:
        del parameters
        core = scheduler.core
        costs = _costs(core.plugin_facts)
        names = {name for profile in core.profiles.values() for name in profile.plugins}
        return PluginsAnswer(
            time=rfc3339_micro(clock.now_ns()),
            scheduling=scheduler.schedules,
            profiles=tuple(_profile(each) for _, each in sorted(core.profiles.items())),
            plugins=tuple(
                RunningPlugin(name=name, costs=costs.get(name, ())) for name in sorted(names)
            ),
        )

    return Question(
        path="/plugins",
        summary="Which plugins run at which extension points of which profile, and what each costs",
        answer=PluginsAnswer,
        ask=ask,
    )


def _profile(profile: Profile) -> RunningProfile:
    name_of = {id(plugin): name for name, plugin in profile.plugins.items()}
    return RunningProfile(
        scheduler_name=profile.name,
        points={
            point: tuple(name_of[id(each)] for each in plugins)
            for point, plugins in profile.points.items()
            if plugins
        },
        weights=dict(profile.weights),
        extenders=tuple(each.name for each in profile.extenders),
    )


def _costs(facts: PluginFacts) -> dict[str, tuple[PointCost, ...]]:
    """Return what each plugin cost, by name."""
    calls: dict[tuple[str, str], list[tuple[int, float, bool]]] = defaultdict(list)
    for (plugin, point, status), histogram in facts.executions.items():
        calls[plugin, point].append((histogram.count, histogram.total, status == "Error"))
    costs_by_plugin: dict[str, list[PointCost]] = defaultdict(list)
    for (plugin, point), samples in sorted(calls.items()):
        costs_by_plugin[plugin].append(
            PointCost(
                point=point,
                calls=sum(count for count, _, _ in samples),
                seconds=sum(seconds for _, seconds, _ in samples),
                errors=sum(count for count, _, wrong in samples if wrong),
            )
        )
    return {plugin: tuple(costs) for plugin, costs in costs_by_plugin.items()}
