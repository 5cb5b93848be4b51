"""The page of cluster events: which watched change is which event, and who asks for it.

Called by ``tools.pages.generate``; read from the program: the kinds that are watched, and what the
plugins of the default profile registered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from moorage.api.changes import RESERVATION_DELETE, Action, ClusterEvent, Resource, matches
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.config.own import LoadedConfiguration
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.core import build_core
from moorage.service.intake.hint_map import build_hints
from moorage.service.intake.kinds import WATCHED
from tools.pages.state_tables import table

_HEADER = """# Cluster events

<!-- Written by `make docs` from the program. Do not edit. -->

What a change of the cluster is called, in metrics and in hints, and which plugins of the default
profile ask for it. An event nobody asks for moves nothing and is not kept. A node may change in
several ways at once and is reported as several events, in this order; a pod that changed in none of
these ways as `Update`. With `--emulated-version 1.37` metrics say `UnscheduledPodAdd` and
`UnscheduledPodDelete`, and `TargetPodUpdate...` for `UnschedulablePodUpdate...`, as 1.37 does.

"""
_SILENT = """
There is no event of {}: they are read, but no plugin waits for them.

## Kinds watched

Besides nodes and pods, with the version of Kubernetes that first served each by default. A kind
that the server does not serve counts as empty. The log says so once, and the scheduler requests
the kind again every minute.

"""
_ADDED_DELETED = (Action.ADD, Action.DELETE)
_OF_NODES = (
    *_ADDED_DELETED,
    Action.UPDATE_NODE_ALLOCATABLE,
    Action.UPDATE_NODE_LABEL,
    Action.UPDATE_NODE_TAINT,
    Action.UPDATE_NODE_CONDITION,
    Action.UPDATE_NODE_ANNOTATION,
    Action.UPDATE_NODE_DECLARED_FEATURE,
)
_OF_PODS = (
    Action.UPDATE_POD_LABEL,
    Action.UPDATE_POD_SCALE_DOWN,
    Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
    Action.UPDATE_POD_TOLERATION,
    Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
    Action.UPDATE,
)
_WHAT = {
    Action.ADD: "appeared",
    Action.DELETE: "went",
    Action.UPDATE: "changed",
    Action.UPDATE_NODE_ALLOCATABLE: "`status.allocatable` changed",
    Action.UPDATE_NODE_LABEL: "labels changed",
    Action.UPDATE_NODE_TAINT: "taints changed, or it became schedulable",
    Action.UPDATE_NODE_CONDITION: "the status of a condition changed",
    Action.UPDATE_NODE_ANNOTATION: "annotations changed",
    Action.UPDATE_NODE_DECLARED_FEATURE: "declared features changed",
    Action.UPDATE_POD_LABEL: "labels changed",
    Action.UPDATE_POD_SCALE_DOWN: "asks for less",
    Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED: "lost its last scheduling gate",
    Action.UPDATE_POD_TOLERATION: "has another number of tolerations",
    Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM: "its generated claims changed",
}


def event_page() -> str:
    """Return which watched change is which cluster event, and which plugins ask for it."""
    streams, clock = Streams(0), ManualClock()
    core = build_core(LoadedConfiguration(), in_tree_registry(), clock=clock, streams=streams)
    (profile,) = core.profiles.values()
    registered: dict[str, list[ClusterEvent]] = {}
    for hint in build_hints(profile):
        registered.setdefault(hint.plugin, []).append(hint.event)
    rows = [
        [kind, _WHAT[Action(event.action)], *_asked(event, registered)] for kind, event in _all()
    ]
    silent = ", ".join(sorted(f"`{k.resource.qualified}`" for k in WATCHED if k.event is None))
    kinds = [
        [f"`{kind.resource.qualified}`", kind.resource.api_version, kind.since] for kind in WATCHED
    ]
    return (
        _HEADER
        + table(["Kind", "What happened", "Event", "Asked for by"], rows)
        + _SILENT.format(silent)
        + table(["Kind", "API version", "Since"], kinds)
    )


def _all() -> Iterator[tuple[str, ClusterEvent]]:
    for action in _OF_NODES:
        yield "node", ClusterEvent(Resource.NODE, action)
    for action in (*_ADDED_DELETED, *_OF_PODS):
        yield "pod with a node", ClusterEvent(Resource.ASSIGNED_POD, action)
    for action in _OF_PODS:
        yield "pod without a node", ClusterEvent(Resource.UNSCHEDULABLE_POD, action)
    for kind in WATCHED:
        if kind.event is not None:
            for action in (*_ADDED_DELETED, Action.UPDATE):
                yield kind.resource.kind, ClusterEvent(kind.event, action)
    yield "what a failed binding held in memory", RESERVATION_DELETE


def _asked(event: ClusterEvent, registered: Mapping[str, Sequence[ClusterEvent]]) -> list[str]:
    asking = [
        plugin
        for plugin, events in registered.items()
        if any(matches(each, event) for each in events)
    ]
    return [f"`{event.label}`", ", ".join(asking) or "nobody"]
