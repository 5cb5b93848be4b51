"""The deciding half put together: plugins as the queue and the snapshot see them."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod
from moorage.api.workloads import Namespace
from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage.base.rng import Streams
from moorage.config.defaults import with_defaults
from moorage.config.own import LoadedConfiguration, MoorageConfiguration, QueueCompat
from moorage.config.types import (
    KubeSchedulerConfiguration,
    PluginRef,
    Plugins,
    PluginSet,
    Profile,
)
from moorage.framework.points import EventRegistration
from moorage.framework.registry import PluginEntry
from moorage.framework.status import SUCCESS, Status, unresolvable
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.core import Core, build_core
from moorage.state.nominations import NominatingInfo
from scheduler.tests.service.build import World, pod

NODE_ADD = ClusterEvent(Resource.NODE, Action.ADD)


def core_with(plugin_class: type[Any]) -> Core:
    """The default profile and one plugin more."""
    registry = in_tree_registry()
    registry.register(PluginEntry("Mine", plugin_class))
    enabled = PluginSet(enabled=[PluginRef(name="Mine")])
    profile = Profile(scheduler_name="default-scheduler", plugins=Plugins(multi_point=enabled))
    config = with_defaults(KubeSchedulerConfiguration(profiles=[profile]))
    return build_core(
        LoadedConfiguration(config), registry, clock=ManualClock(), streams=Streams(1)
    )


class Hinting:
    """Rejects; its hint answers what the class attribute says."""

    name = "Mine"
    answer: Any = None

    def __init__(self, args: object, handle: object) -> None:
        del args, handle

    def filter_node(self, state: object, pod: object, node: object) -> Status:
        del state, pod, node
        return unresolvable("no")

    def events_to_register(self) -> list[EventRegistration]:
        return [EventRegistration(NODE_ADD, None if self.answer is None else self.hint)]

    def hint(self, pod: Pod, old: object, new: object) -> bool:
        del pod, old, new
        if isinstance(self.answer, Exception):
            raise self.answer
        return bool(self.answer)


@pytest.mark.parametrize(
    ("answer", "places"),
    [
        pytest.param(None, (0, 1), id="no hint always means retry"),
        pytest.param(True, (0, 1), id="true means retry"),
        pytest.param(False, (1, 0), id="false leaves the pod waiting"),
        pytest.param(RuntimeError("oops"), (0, 1), id="a hint that breaks means retry"),
    ],
)
def test_a_hint_decides_whether_the_pod_is_retried(answer: Any, places: tuple[int, int]) -> None:
    core = core_with(type("Mine", (Hinting,), {"answer": answer}))
    core.queue.add(pod())
    queued = core.queue.pop()
    assert queued is not None
    queued.rejected_by(["Mine"])
    core.queue.add_unschedulable_if_not_present(queued)
    core.queue.move_all(NODE_ADD, None, None)
    pending = core.queue.pending()
    assert (len(pending.unschedulable), len(pending.backoff) + len(pending.active)) == places


class Gating:
    """Answers at PreEnqueue what the class attribute says."""

    name = "Mine"
    answer: Any = SUCCESS

    def __init__(self, args: object, handle: object) -> None:
        del args, handle

    def pre_enqueue(self, pod: Pod) -> Status:
        del pod
        if isinstance(self.answer, Exception):
            raise self.answer
        assert isinstance(self.answer, Status)
        return self.answer


@pytest.mark.parametrize(
    ("answer", "gated"),
    [
        pytest.param(SUCCESS, None, id="the gate is open"),
        pytest.param(
            unresolvable("wait"),
            ("UnschedulableAndUnresolvable", ("wait",)),
            id="the gate is closed",
        ),
        pytest.param(
            RuntimeError("oops"),
            ("Error", ("RuntimeError: oops",)),
            id="a gate that raises keeps the pod out",
        ),
    ],
)
def test_a_gate_keeps_the_pod_out(answer: Any, gated: tuple[str, tuple[str, ...]] | None) -> None:
    core = core_with(type("Mine", (Gating,), {"answer": answer}))
    core.queue.add(pod())
    pending = core.queue.pending()
    assert len(pending.active) == (gated is None)
    assert [each.gating_plugin for each in pending.gated] == ([] if gated is None else ["Mine"])
    core.queue.validate()


def test_the_snapshot_reads_nominations_as_they_are_now() -> None:
    world = World()
    nominations, nominator = world.core.snapshot.nominations, world.queue.nominator

    def read() -> dict[str, list[tuple[str, int]]]:
        return {
            name: [(info.name, info.priority) for info in infos]
            for name, infos in nominations.items()
        }

    assert (read(), len(nominations)) == ({}, 0)
    for name, node_name in (("a", "n1"), ("b", "n1"), ("c", "n2")):
        one = pod(name, priority=3)
        world.store.put_pod(one)
        world.queue.add(one)
        world.queue.nominate(one, NominatingInfo(node_name))
    assert read() == {"n1": [("a", 3), ("b", 3)], "n2": [("c", 3)]}
    nominator.withdraw_nomination(pod("a"))
    nominator.withdraw_nomination(pod("c"))
    assert (read(), len(nominations), "n2" in nominations) == ({"n1": [("b", 3)]}, 1, False)
    world.queue.update(pod("b"), pod("b", version="2", priority=8))
    assert read() == {"n1": [("b", 8)]}


@pytest.mark.parametrize(
    ("compat", "settings", "after"),
    [
        pytest.param("v1.36", (2, 8, 300, True), "unschedulable", id="v1.36"),
        pytest.param("v1.20", (2, 8, 60, False), "backoff", id="v1.20"),
    ],
)
def test_the_queue_is_that_of_the_version_asked_for(
    compat: QueueCompat, settings: tuple[int, int, int, bool], after: str
) -> None:
    config = LoadedConfiguration(
        with_defaults(
            KubeSchedulerConfiguration(pod_initial_backoff_seconds=2, pod_max_backoff_seconds=8)
        ),
        MoorageConfiguration(queue_compat=compat),
    )
    core = build_core(config, in_tree_registry(), clock=ManualClock(), streams=Streams(1))
    used = core.queue.settings
    assert (
        used.backoff_initial_ns / NS_PER_SECOND,
        used.backoff_max_ns / NS_PER_SECOND,
        used.unschedulable_max_ns / NS_PER_SECOND,
        used.pop_from_backoff,
    ) == settings
    core.queue.add(pod())
    queued = core.queue.pop()
    assert queued is not None
    queued.rejected_by(["NodeResourcesFit"])
    core.queue.add_unschedulable_if_not_present(queued)
    # A volume cures no lack of resources; only v1.20 does not ask.
    core.queue.move_all(ClusterEvent(Resource.PERSISTENT_VOLUME, Action.ADD), None, None)
    assert getattr(core.queue.counts(), after) == 1


def test_v1_20_reads_namespaces_as_they_are_now() -> None:
    config = LoadedConfiguration(own=MoorageConfiguration(queue_compat="v1.20"))
    core = build_core(config, in_tree_registry(), clock=ManualClock(), streams=Streams(1))
    near = {"matchLabels": {"app": "db"}}, {"matchLabels": {"team": "a"}}
    term = {"labelSelector": near[0], "namespaceSelector": near[1], "topologyKey": "zone"}
    required = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    core.queue.add(pod(affinity=required))
    queued = core.queue.pop()
    assert queued is not None
    queued.rejected_by(["InterPodAffinity"])
    core.queue.add_unschedulable_if_not_present(queued)
    placed = pod("db", labels={"app": "db"}, nodeName="n1")
    event = ClusterEvent(Resource.ASSIGNED_POD, Action.ADD)
    core.queue.move_all(event, None, placed)
    assert core.queue.counts().unschedulable == 1
    labels = {"team": "a"}
    namespace = Namespace(metadata=ObjectMeta(name=placed.metadata.namespace, labels=labels))
    core.snapshot.listers.namespaces.put(namespace)
    core.queue.move_all(event, None, placed)
    assert core.queue.counts().backoff == 1


class LastNameFirst:
    """Orders pods by name, from z to a."""

    name = "LastNameFirst"

    def __init__(self, args: object, handle: object) -> None:
        del args, handle

    def sort_key(self, priority: int, timestamp_ns: int, pod: Pod) -> tuple[int, ...]:
        del priority, timestamp_ns
        return tuple(-ord(letter) for letter in pod.name)


def test_the_queue_is_ordered_by_the_first_profile() -> None:
    registry = in_tree_registry()
    registry.register(PluginEntry("LastNameFirst", LastNameFirst))
    sort = PluginSet(enabled=[PluginRef(name="LastNameFirst")], disabled=[PluginRef(name="*")])
    profiles = [
        Profile(scheduler_name=name, plugins=Plugins(queue_sort=sort)) for name in ("one", "two")
    ]
    config = LoadedConfiguration(with_defaults(KubeSchedulerConfiguration(profiles=profiles)))
    core = build_core(config, registry, clock=ManualClock(), streams=Streams(1))
    for name, profile in (("b", "one"), ("c", "two"), ("a", "one")):
        core.queue.add(pod(name, schedulerName=profile))
    popped = [core.queue.pop() for _ in range(3)]
    assert [queued and queued.pod.name for queued in popped] == ["c", "b", "a"]
