"""Checks which methods make a plugin, and whether they take the arguments they will be given.

Asked when a plugin from outside is registered, so that a swapped or missing argument is an error at
start-up instead of a failing attempt.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from moorage.framework import group, points

METHODS: Final[dict[str, tuple[str, Callable[..., Any]]]] = {
    "pre_enqueue": ("PreEnqueue", points.PreEnqueuePlugin.pre_enqueue),
    "sort_key": ("QueueSort", points.QueueSortPlugin.sort_key),
    "less": ("QueueSort", points.ComparingQueueSortPlugin.less),
    "pre_filter": ("PreFilter", points.PreFilterPlugin.pre_filter),
    "add_pod": ("PreFilter", points.PreFilterExtensions.add_pod),
    "remove_pod": ("PreFilter", points.PreFilterExtensions.remove_pod),
    "filter_node": ("Filter", points.NodeFilterPlugin.filter_node),
    "filter": ("Filter", points.FilterPlugin.filter),
    "post_filter": ("PostFilter", points.PostFilterPlugin.post_filter),
    "pre_score": ("PreScore", points.PreScorePlugin.pre_score),
    "score_node": ("Score", points.NodeScorePlugin.score_node),
    "score": ("Score", points.ScorePlugin.score),
    "normalize": ("NormalizeScore", points.NormalizePlugin.normalize),
    "reserve": ("Reserve", points.ReservePlugin.reserve),
    "unreserve": ("Reserve", points.ReservePlugin.unreserve),
    "permit": ("Permit", points.PermitPlugin.permit),
    "pre_bind_pre_flight": ("PreBind", points.PreBindPreFlightPlugin.pre_bind_pre_flight),
    "pre_bind": ("PreBind", points.PreBindPlugin.pre_bind),
    "bind": ("Bind", points.BindPlugin.bind),
    "post_bind": ("PostBind", points.PostBindPlugin.post_bind),
    "generate_placements": (
        "PlacementGenerate",
        group.PlacementGeneratePlugin.generate_placements,
    ),
    "score_placements": ("PlacementScore", group.PlacementScorePlugin.score_placements),
    "events_to_register": ("events", points.EventsToRegister.events_to_register),
}
"""Every method the framework calls: its extension point, and the Protocol's method."""

MAY_WAIT: Final = frozenset({"pre_bind", "bind", "post_bind"})
"""Methods that run in the binding task and may be ``async def``."""

NEEDED_BESIDE: Final = {"reserve": "unreserve", "add_pod": "remove_pod", "remove_pod": "add_pod"}
"""Methods that come in pairs."""

_POSITIONAL: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def class_faults(plugin_class: type[Any]) -> Iterator[str]:
    """Yield the faults that keep a class from being a plugin, each as ``Point: what is wrong``."""
    for method, (point, declared) in METHODS.items():
        method_of_class = getattr(plugin_class, method, None)
        if method_of_class is None:
            continue
        if not callable(method_of_class):
            yield f"{point}: {method} is no method"
            continue
        wanted = list(inspect.signature(declared).parameters.values())[1:]
        bound = not isinstance(
            inspect.getattr_static(plugin_class, method), staticmethod | classmethod
        )
        shown = f"{method}({', '.join(p.name for p in wanted)})"
        for fault in parameter_faults(method_of_class, wanted, skip_first=bound):
            yield f"{point}: {method} {fault}: it is called as {shown}"
        if method not in MAY_WAIT and inspect.iscoroutinefunction(method_of_class):
            yield f"{point}: {method} is async, but only {', '.join(sorted(MAY_WAIT))} may wait"
        other = NEEDED_BESIDE.get(method)
        if other is not None and not hasattr(plugin_class, other):
            yield f"{point}: {method} needs {other} beside it"


def parameter_faults(
    function: Callable[..., Any], wanted: Sequence[inspect.Parameter], *, skip_first: bool = False
) -> Iterator[str]:
    """Yield each argument of the call that a function does not accept.

    Parameters
    ----------
    function
        The function.
    wanted
        The arguments of the call: by position, or by name where keyword-only.
    skip_first
        Whether the first parameter is ``self``.
    """
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some builtins have no signature: calling will tell
        return
    if skip_first:
        parameters = parameters[1:]
    kinds = {parameter.kind for parameter in parameters}
    places = [p for p in parameters if p.kind in _POSITIONAL]
    by_place = [p.name for p in wanted if p.kind in _POSITIONAL]
    by_name = [p.name for p in wanted if p.kind is inspect.Parameter.KEYWORD_ONLY]
    for index, name in enumerate(by_place):
        if index < len(places):
            found = places[index].name
            if found != name and found in by_place:
                yield f"takes `{found}` where it is given `{name}`"
                return  # a misplaced argument makes another one wrong, too
        elif inspect.Parameter.VAR_POSITIONAL not in kinds:
            yield f"takes no `{name}`"
    names = {p.name for p in parameters}
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        yield from (f"takes no `{name}`" for name in by_name if name not in names)
    needed = [
        *places[len(by_place) :],
        *(p for p in parameters if p.kind is inspect.Parameter.KEYWORD_ONLY),
    ]
    for parameter in needed:
        if parameter.default is parameter.empty and parameter.name not in by_name:
            yield f"asks for `{parameter.name}`, which it is not given"
