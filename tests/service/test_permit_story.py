"""Pods that start together, by a plugin of a few lines that holds them at Permit; in virtual time.

The plugin does what the first coscheduling plugins did, with nothing but its handle: hold a member
until enough are placed, let all go at once, and turn all away when one is. It shows what waiting
pods are for, and that plugins may decide about them from any point. Not covered: the gang
scheduling moorage comes with.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from moorage.api.resources import PODS
from moorage.base.clock import ManualClock
from moorage.client.transport import Answer, Transport
from moorage.config.defaults import with_defaults
from moorage.config.own import LoadedConfiguration
from moorage.config.types import (
    KubeSchedulerConfiguration,
    PluginRef,
    Plugins,
    PluginSet,
    Profile,
)
from moorage.framework.handle import Handle
from moorage.framework.registry import PluginEntry
from moorage.framework.status import SUCCESS, Code, Status
from moorage.plugins.in_tree import in_tree_registry
from moorage.snapshot.pod_info import PodInfo
from moorage.testing.builders import Manifest, node_manifest, pod_manifest
from moorage.testing.virtual_cluster import VirtualCluster
from moorage.testing.virtual_loop import run_virtual
from tests.service.test_preemption import Watched

Story = Callable[[VirtualCluster], Awaitable[None]]

WAIT_SECONDS = 10.0


class Together:
    """Holds the pods of a group until as many are placed as its label ``least`` says."""

    name = "Together"

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        self._effects = handle.effects
        self._placed: dict[str, set[str]] = {}

    def reserve(self, state: object, pod: PodInfo, node_name: str) -> Status:
        del state, node_name
        self._placed.setdefault(pod.pod.metadata.labels.get("group", ""), set()).add(pod.uid)
        return SUCCESS

    def unreserve(self, state: object, pod: PodInfo, node_name: str) -> None:
        del state, node_name
        group = pod.pod.metadata.labels.get("group", "")
        self._placed.get(group, set()).discard(pod.uid)
        for each in self._waiting(group):
            self._effects.reject(each, self.name, f"{pod.name} has no place")

    def permit(self, state: object, pod: PodInfo, node_name: str) -> tuple[Status, float]:
        del state, node_name
        labels = pod.pod.metadata.labels
        if "group" not in labels:
            return SUCCESS, 0.0
        if len(self._placed[labels["group"]]) < int(labels["least"]):
            return Status(Code.WAIT), WAIT_SECONDS
        for each in self._waiting(labels["group"]):
            self._effects.allow(each, self.name)
        self._effects.emit(pod.pod, kind="Normal", reason="Together", action="Permit", note="go")
        return SUCCESS, 0.0

    def _waiting(self, group: str) -> list[str]:
        return [
            each.pod.uid
            for each in self._effects.waiting_pods()
            if each.pod.metadata.labels.get("group") == group
        ]


def play(story: Story, *, around: Callable[[Transport], Transport] | None = None) -> None:
    """Run a story on three nodes with room for one member each."""
    clock = ManualClock()
    registry = in_tree_registry()
    registry.register(PluginEntry("Together", Together))
    enabled = PluginSet(enabled=[PluginRef(name="Together")])
    profile = Profile(scheduler_name="default-scheduler", plugins=Plugins(multi_point=enabled))
    config = with_defaults(KubeSchedulerConfiguration(profiles=[profile]))

    async def main() -> None:
        async with VirtualCluster(
            clock,
            nodes=[node_manifest(f"n{i}") for i in range(3)],
            config=LoadedConfiguration(scheduler=config),
            registry=registry,
            around=around,
        ) as cluster:
            await story(cluster)
            core = cluster.scheduler.core
            core.queue.validate()
            core.cache.validate()
            assert len(core.waiting) == 0

    run_virtual(main(), clock)


def members(group: str, count: int, least: int) -> list[Manifest]:
    labels = {"group": group, "least": str(least)}
    return [pod_manifest(f"{group}{i}", cpu="3", labels=labels) for i in range(count)]


def running(cluster: VirtualCluster, names: Sequence[str]) -> int:
    return sum(cluster.phase_of(name) == "Running" for name in names)


def test_members_start_together() -> None:
    async def story(cluster: VirtualCluster) -> None:
        first, second, third = members("a", 3, least=3)
        await cluster.create(first, second)
        await cluster.until(lambda: len(cluster.scheduler.core.waiting) == 2)
        assert cluster.placements() == {"default/a0": "", "default/a1": ""}
        await cluster.create(third)
        await cluster.until(lambda: running(cluster, ("a0", "a1", "a2")) == 3)
        assert cluster.seconds < WAIT_SECONDS
        (told,) = await cluster.events("a2", reason="Together")
        assert (told["message"], told["reportingComponent"]) == ("go", "default-scheduler")

    play(story)


def test_when_one_gives_up_all_do_and_nothing_is_held() -> None:
    async def story(cluster: VirtualCluster) -> None:
        core = cluster.scheduler.core
        await cluster.create(*members("a", 4, least=4))
        await cluster.until(lambda: len(core.waiting) == 3)
        await cluster.create(pod_manifest("other", cpu="3"))
        await cluster.until(lambda: cluster.phase_of("other") == "Running", seconds=20)
        assert WAIT_SECONDS <= cluster.seconds < WAIT_SECONDS + 3
        said = [
            event["message"].removeprefix("0/1 nodes are available: 1 ")
            for i in range(4)
            for event in await cluster.events(f"a{i}", reason="FailedScheduling")
        ]
        timeout = "rejected due to timeout after waiting 10s at plugin Together."
        assert said.count(timeout) == 1
        assert sum(text.endswith(" has no place.") for text in said) >= 2
        for i in range(4):
            await cluster.client.delete(PODS, f"a{i}", namespace="default")
        await cluster.until(lambda: len(core.waiting) == 0)

    play(story)


def test_a_member_deleted_while_it_waits_turns_the_others_away() -> None:
    async def story(cluster: VirtualCluster) -> None:
        core = cluster.scheduler.core
        await cluster.create(*members("a", 2, least=3))
        await cluster.until(lambda: len(core.waiting) == 2)
        await cluster.client.delete(PODS, "a0", namespace="default")
        await cluster.until(lambda: len(core.waiting) == 0)
        assert cluster.seconds < 2
        assert core.cache.counts().pods == 0
        (told,) = await cluster.events("a1", reason="FailedScheduling")
        assert told["message"] == "0/1 nodes are available: 1 a0 has no place."

    play(story)


def test_a_member_whose_binding_fails_is_tried_again_and_those_bound_stay() -> None:
    refused = Answer(500, {}, b'{"kind":"Status","reason":"Unknown","message":"no","code":500}')
    made: list[Watched] = []

    class RefusesOnce(Watched):
        async def request(self, call: Any) -> Answer:
            if call.path.endswith("/a1/binding") and self.script:
                return self.script.pop(0)
            return await super().request(call)

    def around(inner: Transport) -> Transport:
        carrier = RefusesOnce(inner, "", [refused])
        made.append(carrier)
        return carrier

    async def story(cluster: VirtualCluster) -> None:
        await cluster.create(*members("a", 3, least=3))
        await cluster.until(lambda: running(cluster, ("a0", "a2")) == 2)
        bound: Any = cluster.pod("a0")
        await cluster.until(lambda: running(cluster, ("a0", "a1", "a2")) == 3)
        assert made[0].script == []
        again: Any = cluster.pod("a0")
        assert again["metadata"]["uid"] == bound["metadata"]["uid"]
        (told,) = await cluster.events("a1", reason="FailedScheduling")
        assert told["message"] == 'running Bind plugin "DefaultBinder": no'

    play(story, around=around)
