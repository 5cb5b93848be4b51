"""A plugin that misbehaves as plugins of users do: it raises, hangs, refuses and answers nonsense.

Each act is drawn from the scheduler's own random streams. When a simulation comes to rest the
plugin becomes quiet, so that each pod must find its node after all.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import cast

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base import aio
from moorage.base.rng import Random
from moorage.framework.cycle_state import CycleState
from moorage.framework.handle import Handle
from moorage.framework.points import EventRegistration
from moorage.framework.registry import PluginEntry, Registry
from moorage.framework.status import SUCCESS, Code, Status, error, unschedulable
from moorage.plugins.in_tree import in_tree_registry
from moorage.snapshot.pod_info import PodInfo
from moorage_lab.fault_sim.delayed_step import DelayedStep

# Shares of calls; guesses. Pods that are tried five times come through half of the time.
_OFTEN, _SELDOM = 0.15, 0.05

_NONSENSE = cast(Status, 42)
"""No Status, and nothing that can be read as one."""


class PluginFaults:
    """Whether the plugins and extenders of a simulation misbehave, and how much.

    Attributes
    ----------
    bad
        False at rest: then nothing misbehaves.
    rate
        The usual shares are multiplied by this number, which a script changes.
    over
        Set once nothing misbehaves any more.
    struck
        How often each kind of plugin fault happened.
    spoiled
        Uids of the pods that failed at Permit or right before their binding, when others of their
        group may have been let go or bound.
    """

    def __init__(self, *, bad: bool = True) -> None:
        self.bad = bad
        self.rate = 1.0
        self.over = asyncio.Event()
        self.fault_counts: dict[str, int] = {}
        self.spoiled: set[str] = set()

    def acts(self, fault: str, share: float, rng: Random) -> bool:
        """Return whether a kind of plugin fault happens now, and count it."""
        hit = self.bad and rng.random() < share * self.rate
        if hit:
            self.fault_counts[fault] = self.fault_counts.get(fault, 0) + 1
        return hit

    def end_faults(self) -> None:
        """Let nothing misbehave from now on."""
        self.bad = False
        self.over.set()


class BrokenPlugin:
    """Filter, Score, Reserve, Permit and PreBind plugin."""

    name = "BrokenPlugin"

    def __init__(
        self, args: object, handle: Handle, *, plugin_faults: PluginFaults | None = None
    ) -> None:
        del args
        self._plugin_faults = PluginFaults(bad=False) if plugin_faults is None else plugin_faults
        self._rng = handle.streams.stream("mischief")

    def _acts(self, fault: str, share: float) -> bool:
        return self._plugin_faults.acts(f"plugin-{fault}", share, self._rng)

    def filter_node(self, state: CycleState, pod: Pod, node: Node) -> Status:
        """Accept the node, break, or answer nonsense."""
        del state, pod, node
        if self._acts("raises", _SELDOM):
            raise RuntimeError("a plugin broke in Filter")
        return _NONSENSE if self._acts("nonsense", _SELDOM) else SUCCESS

    def score_node(self, state: CycleState, pod: Pod, node: Node) -> float:
        """Return the same for every node, or no number."""
        del state, pod, node
        return math.nan if self._acts("nonsense", _SELDOM / 5) else 1

    def reserve(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Reserve nothing, or refuse."""
        del state, pod, node_name
        return unschedulable("not this time") if self._acts("refuses", _OFTEN) else SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, node_name: str) -> None:
        """Do nothing."""

    def permit(self, state: CycleState, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        """Let the pod go, hold it for a second until the time is over, or refuse.

        The plugin of gangs comes first: it has let the other members go, as upstream.
        """
        del state, node_name
        if self._acts("waits", _OFTEN):
            return Status(Code.WAIT, ("wait a second",)), 1.0
        if self._acts("refuses", _SELDOM):
            self._plugin_faults.spoiled.add(pod.uid)
            return unschedulable("no permit"), 0.0
        return SUCCESS, 0.0

    async def pre_bind(self, state: CycleState, pod: PodInfo, node_name: str) -> Status:
        """Prepare at once, late, or fail; sometimes by an exception, or never while it is bad."""
        del state, node_name
        if self._acts("slow", _OFTEN):
            await aio.sleep(self._rng.uniform(0, 4))
        if self._acts("hangs", _SELDOM):
            await self._plugin_faults.over.wait()
        self._plugin_faults.spoiled.add(pod.uid)
        if self._acts("raises", _SELDOM):
            raise RuntimeError("a plugin broke in PreBind")
        if self._acts("nonsense", _SELDOM):
            return _NONSENSE
        if self._acts("fails", _OFTEN):
            return error("a plugin failed in PreBind")
        self._plugin_faults.spoiled.discard(pod.uid)
        return SUCCESS

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register new and deleted pods; the hint breaks sometimes."""
        pod = ClusterEvent(Resource.POD, Action.ADD | Action.DELETE)
        return (EventRegistration(pod, self._hint),)

    def _hint(self, waiting: Pod, old: object | None, new: object | None) -> bool:
        del waiting, old, new
        if self._acts("raises", _SELDOM):
            raise RuntimeError("a plugin broke in its hint")
        return True


def registry(plugin_faults: PluginFaults | None = None) -> Registry:
    """Return the in-tree plugins and those of simulations, which set-ups may enable."""
    plugins = in_tree_registry()
    plugins.register(PluginEntry(name=DelayedStep.name, plugin_class=DelayedStep))
    entry = BrokenPluginEntry(
        name=BrokenPlugin.name,
        plugin_class=BrokenPlugin,
        origin="the simulation",
        plugin_faults=plugin_faults,
    )
    plugins.register(entry)
    return plugins


class BrokenPluginEntry(PluginEntry, frozen=True, kw_only=True):
    """The entry of the plugin that misbehaves, with the faults of its simulation."""

    plugin_faults: PluginFaults | None = None

    def make(self, args: object, handle: Handle) -> object:
        """Construct the plugin for one profile."""
        return BrokenPlugin(args, handle, plugin_faults=self.plugin_faults)
