"""The known plugins: an explicit map from a plugin's name to its entry; what makes a plugin.

Nothing registers itself on import. The in-tree map is ``moorage.plugins.in_tree``; plugins from
outside are found by `loading`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import msgspec

from moorage.framework import group, points
from moorage.framework.containment import Containment
from moorage.framework.handle import Handle
from moorage.framework.signatures import parameter_faults

# Extension point, as the configuration spells it, to the methods that make a plugin extend it.
POINT_METHODS: Final[dict[str, tuple[str, ...]]] = {
    "preEnqueue": ("pre_enqueue",),
    "queueSort": ("sort_key", "less"),
    "preFilter": ("pre_filter",),
    "filter": ("filter", "filter_node"),
    "postFilter": ("post_filter",),
    "preScore": ("pre_score",),
    "score": ("score", "score_node"),
    "reserve": ("reserve",),
    "permit": ("permit",),
    "preBind": ("pre_bind",),
    "bind": ("bind",),
    "postBind": ("post_bind",),
    "placementGenerate": ("generate_placements",),
    "placementScore": ("score_placements",),
    "podGroupPostFilter": ("post_filter_group",),
}

# Names of the Go interfaces, which is how kube-scheduler's start-up errors call the points.
POINT_TYPES: Final[dict[str, str]] = {
    point: f"{point[0].upper()}{point[1:]}Plugin" for point in POINT_METHODS
}

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


class PluginEntry(msgspec.Struct, frozen=True):
    """One known plugin.

    Parameters
    ----------
    name
        The name by which the plugin is configured.
    plugin_class
        Class of the plugin; its methods say which points it extends.
    args_type
        Type of the plugin's arguments, decoded from ``pluginConfig``; None without arguments.
    origin
        Where a plugin from outside comes from, for people; "" for in-tree plugins. A plugin with
        an origin is called through the registry's containment.
    group_sources
        Names of the group sources whose members its Permit holds. The plugin opens these sources to
        the pods of its profiles. The names are known before the plugin is made, because the
        snapshot needs them.
    family
        Name of the in-tree plugins that share state within a profile. A reload keeps all of them
        or none. "" for a plugin that keeps its state to itself.
    """

    name: str
    plugin_class: type[Any]
    args_type: type[Any] | None = None
    origin: str = ""
    group_sources: tuple[str, ...] = ()
    family: str = ""

    def extends(self, point: str) -> bool:
        """Whether the plugin extends an extension point."""
        return any(hasattr(self.plugin_class, method) for method in POINT_METHODS[point])

    def make(self, args: object, handle: Handle) -> object:
        """Construct the plugin for one profile."""
        return self.plugin_class(args, handle)


class Registry:
    """Known plugins by name, in the order they were registered.

    Parameters
    ----------
    entries
        The first entries.
    containment
        How plugins from outside are called; without a time budget when None.

    Raises
    ------
    ValueError
        Two entries have the same name.
    """

    def __init__(
        self, entries: Iterable[PluginEntry] = (), *, containment: Containment | None = None
    ) -> None:
        self.containment = Containment() if containment is None else containment
        self._entries: dict[str, PluginEntry] = {}
        self._unloaded: dict[str, Callable[[], PluginEntry]] = {}
        for entry in entries:
            self.register(entry)

    def register(self, entry: PluginEntry) -> None:
        """Add a plugin; a second plugin of the same name is refused."""
        self._refuse_twice(entry.name)
        self._entries[entry.name] = entry

    def register_unloaded(self, name: str, load: Callable[[], PluginEntry]) -> None:
        """Add a plugin that is loaded only when its name is first looked up."""
        self._refuse_twice(name)
        self._unloaded[name] = load

    def _refuse_twice(self, name: str) -> None:
        if name in self._entries or name in self._unloaded:
            raise ValueError(f"a plugin named {name} already exists")

    def find(self, name: str) -> PluginEntry | None:
        """Return the entry of a name, or None.

        Raises
        ------
        ConfigError
            The plugin is known, but cannot be loaded.
        """
        load = self._unloaded.get(name)
        if load is not None:
            self._entries[name] = load()
            del self._unloaded[name]
        return self._entries.get(name)

    def __iter__(self) -> Iterator[PluginEntry]:
        return iter(self._entries.values())

    def extends(self, name: str, point: str) -> bool:
        """Whether a known plugin of this name extends a point."""
        entry = self.find(name)
        return entry is not None and entry.extends(point)

    def group_sources(self, name: str) -> tuple[str, ...]:
        """Return the group sources that a plugin of this name opens; empty for an unknown name."""
        entry = self.find(name)
        return () if entry is None else entry.group_sources
