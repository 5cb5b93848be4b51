"""Tools for tests of plugins: a cluster without changes, and the scheduler's answers about a pod.

::

    cluster = StillCluster([node("a"), node("b", labels={"spot": "true"})], plugins=[no_spot])
    assert cluster.refused(pod()) == {"b": ("spot node",)}

The plugins are loaded, wrapped and checked as with ``--plugin``. To test queue, Permit or binding,
which take time, pass the results of `with_plugins` to a `VirtualCluster`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base.clock import ManualClock
from moorage.base.rng import Streams
from moorage.config.own import LoadedConfiguration
from moorage.config.types import PluginConfig, PluginRef, Plugins, PluginSet
from moorage.engine.decision import Decision
from moorage.engine.evaluation import Evaluation, evaluate
from moorage.engine.select_node import smallest_name
from moorage.framework.containment import Containment
from moorage.framework.enabling import enable_unnamed
from moorage.framework.loading import entry_of, load_plugin
from moorage.framework.registry import Registry
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.core import build_core
from moorage.snapshot.pod_info import PodInfo

_ALWAYS_ENABLED = ("PrioritySort", "DefaultBinder")


def with_plugins(
    plugins: Sequence[object],
    *,
    args: Mapping[str, Any] | None = None,
    alone: bool = False,
    config: LoadedConfiguration | None = None,
    containment: Containment | None = None,
) -> tuple[LoadedConfiguration, Registry]:
    """Return a configuration that enables plugins, and a registry that knows them.

    Parameters
    ----------
    plugins
        Classes, decorated functions, or references as ``--plugin`` takes them.
    args
        Arguments by plugin name, as plain values.
    alone
        Whether the default plugins are left out, except the plugins that every profile needs.
    config
        Configuration to start from; the defaults when None.
    containment
        Calls the plugins, and counts their failures; one without a time budget when None.

    Raises
    ------
    UsageError
        A value is not a plugin.
    """
    registry, entries = in_tree_registry(containment), []
    for each in plugins:
        entry = load_plugin(each) if isinstance(each, str) else entry_of(each, origin="a test")
        registry.register(entry)
        entries.append(entry)
    loaded = LoadedConfiguration() if config is None else config
    scheduler = loaded.scheduler
    if alone:
        plugin_set = PluginSet(
            enabled=[PluginRef(name=name) for name in _ALWAYS_ENABLED],
            disabled=[PluginRef(name="*")],
        )
        profiles = [
            msgspec.structs.replace(each, plugins=Plugins(multi_point=plugin_set))
            for each in scheduler.profiles
        ]
        scheduler = msgspec.structs.replace(scheduler, profiles=profiles)
    scheduler, _ = enable_unnamed(scheduler, entries)
    configured = [PluginConfig(name=name, args=value) for name, value in (args or {}).items()]
    profiles = [
        msgspec.structs.replace(each, plugin_config=[*each.plugin_config, *configured])
        for each in scheduler.profiles
    ]
    scheduler = msgspec.structs.replace(scheduler, profiles=profiles)
    return msgspec.structs.replace(loaded, scheduler=scheduler), registry


class StillCluster:
    """Nodes with pods on them, and a scheduler that answers questions and writes nothing.

    Parameters
    ----------
    nodes
        The nodes.
    plugins, args, alone, config, containment
        As `with_plugins`.
    pods
        Pods on the nodes, by node name.
    reuse
        Whether answers are reused for replicas; decisions are the same either way.

    Attributes
    ----------
    failures
        Failures of plugins so far: (plugin, extension point, kind) to their number.
    """

    def __init__(
        self,
        nodes: Sequence[Node] = (),
        *,
        plugins: Sequence[object] = (),
        args: Mapping[str, Any] | None = None,
        alone: bool = False,
        pods: Mapping[str, Sequence[Pod]] | None = None,
        config: LoadedConfiguration | None = None,
        containment: Containment | None = None,
        reuse: bool = True,
    ) -> None:
        loaded, registry = with_plugins(
            plugins, args=args, alone=alone, config=config, containment=containment
        )
        self._core = build_core(
            loaded,
            registry,
            clock=ManualClock(),
            streams=Streams(0),
            tie_break=smallest_name,
            reuse=reuse,
        )
        self.failures = registry.containment.failures
        for node in nodes:
            self._core.cache.add_node(node)
        for node_name, placed in (pods or {}).items():
            for pod in placed:
                self.place(pod, node_name)

    def place(self, pod: Pod, node_name: str) -> None:
        """Put a pod on a node, as if it had been bound there."""
        spec = msgspec.structs.replace(pod.spec, node_name=node_name)
        self._core.cache.add_pod(msgspec.structs.replace(pod, spec=spec))

    def decide(self, pod: Pod) -> Decision:
        """Return what the scheduler decides; of several best nodes, the first by name."""
        return self._core.cycles[pod.spec.scheduler_name].decide(PodInfo(pod))

    def node_of(self, pod: Pod) -> str:
        """Return the node a pod gets, "" for none."""
        return self.decide(pod).node_name

    def message(self, pod: Pod) -> str:
        """Return why a pod gets no node, in the text of its condition and Event."""
        return self.decide(pod).message

    def evaluation(self, pod: Pod) -> Evaluation:
        """Return the answers of every plugin about a pod.

        Raises
        ------
        CycleError
            A plugin failed.
        """
        profile = self._core.profiles[pod.spec.scheduler_name]
        return evaluate(profile, self._core.snapshot, PodInfo(pod))

    def gated(self, pod: Pod) -> str:
        """Return why PreEnqueue keeps a pod out of the queue, "" when it does not."""
        status = self.evaluation(pod).pre_enqueue
        return "" if status is None else status.message

    def refused(self, pod: Pod) -> dict[str, tuple[str, ...]]:
        """Return the reasons of every node that cannot take a pod, by node name."""
        return {name: status.reasons for name, status in self.evaluation(pod).filter.items()}

    def scores(self, pod: Pod, plugin: str) -> dict[str, int]:
        """Return the raw scores a plugin gives, by the name of each node that can take the pod."""
        found = self.evaluation(pod)
        if found.scores is None:
            return {}
        raw_n = found.scores.plugins[plugin].raw_n.tolist()
        return dict(zip(found.feasible, raw_n, strict=True))
