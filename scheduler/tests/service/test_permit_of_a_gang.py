"""Pods that start together, by the plugin of ``docs/how-to/hold-pods.md``; in virtual time.

It does what the first coscheduling plugins did, with nothing but its handle: hold a member until
enough are placed, let all go at once, and turn all away when one is. It shows that plugins may
decide about waiting pods from any point. Not covered: the gang scheduling moorage comes with.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
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
from moorage.framework.loading import load_plugin
from moorage.framework.registry import PluginEntry
from moorage.plugins.in_tree import in_tree_registry
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.service.test_preemption import Watched

Scenario = Callable[[VirtualCluster], Awaitable[None]]

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "hold-pods.md"
WAIT_SECONDS = 10.0  # as the plugin says


def plugin_of_the_page(folder: Path) -> PluginEntry:
    """The plugin as a reader of the page has it: its first Python block, in a file."""
    text = PAGE.read_text().partition("```python\n")[2].partition("```")[0]
    file = folder / "together.py"
    file.write_text(text)
    return load_plugin(f"{file}:Together")


def play(
    folder: Path, scenario: Scenario, *, around: Callable[[Transport], Transport] | None = None
) -> None:
    """Run a scenario on three nodes with room for one member each."""
    clock = ManualClock()
    registry = in_tree_registry()
    registry.register(plugin_of_the_page(folder))
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
            await scenario(cluster)
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


def test_members_start_together(tmp_path: Path) -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        first, second, third = members("a", 3, least=3)
        await cluster.create_objects(first, second)
        await cluster.until(lambda: len(cluster.scheduler.core.waiting) == 2)
        assert cluster.placements() == {"default/a0": "", "default/a1": ""}
        await cluster.create_objects(third)
        await cluster.until(lambda: running(cluster, ("a0", "a1", "a2")) == 3)
        assert cluster.seconds < WAIT_SECONDS

    play(tmp_path, scenario)


def test_one_permit_timeout_rejects_all_members_and_frees_their_nodes(tmp_path: Path) -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        core = cluster.scheduler.core
        await cluster.create_objects(*members("a", 4, least=4))
        await cluster.until(lambda: len(core.waiting) == 3)
        await cluster.create_objects(pod_manifest("other", cpu="3"))
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

    play(tmp_path, scenario)


def test_a_member_deleted_while_it_waits_turns_the_others_away(tmp_path: Path) -> None:
    async def scenario(cluster: VirtualCluster) -> None:
        core = cluster.scheduler.core
        await cluster.create_objects(*members("a", 2, least=3))
        await cluster.until(lambda: len(core.waiting) == 2)
        await cluster.client.delete(PODS, "a0", namespace="default")
        turned_away = "0/1 nodes are available: 1 a0 has no place."
        await cluster.until(lambda: cluster.condition_of("a1")[2] == turned_away)
        assert cluster.seconds < 2
        await cluster.until(lambda: len(core.waiting) == 1)  # tried again, alone
        await cluster.client.delete(PODS, "a1", namespace="default")
        await cluster.until(lambda: len(core.waiting) == 0)
        assert core.cache.counts().pods == 0

    play(tmp_path, scenario)


def test_a_member_whose_binding_fails_is_tried_again_and_those_bound_stay(tmp_path: Path) -> None:
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

    async def scenario(cluster: VirtualCluster) -> None:
        await cluster.create_objects(*members("a", 3, least=3))
        await cluster.until(lambda: running(cluster, ("a0", "a2")) == 2)
        bound: Any = cluster.stored_pod("a0")
        await cluster.until(lambda: running(cluster, ("a0", "a1", "a2")) == 3)
        assert made[0].script == []
        again: Any = cluster.stored_pod("a0")
        assert again["metadata"]["uid"] == bound["metadata"]["uid"]
        (told,) = await cluster.events("a1", reason="FailedScheduling")
        assert told["message"] == 'running Bind plugin "DefaultBinder": no'

    play(tmp_path, scenario, around=around)
