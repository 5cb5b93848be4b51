"""A configuration taken over while the scheduler runs: what changes, what stays, what is refused.

The reading of files and the signal are in tests/cli/run/test_reloading.py.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import pytest

from moorage.api.yaml_text import write_yaml
from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.base.errors import ConfigError
from moorage.base.verbosity import V0
from moorage.config.load import parse_config
from moorage.config.own import LoadedConfiguration
from moorage.plugins.in_tree import in_tree_registry
from moorage.service.scheduler import Scheduler
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

GROUP = "pod-group.scheduling.sigs.k8s.io"
COSCHEDULING = {"enabled": [{"name": "Coscheduling"}]}
TAINT = {"key": "a", "effect": "NoSchedule"}


def profile(name: str = "default-scheduler", **plugins: Any) -> dict[str, Any]:
    return {"schedulerName": name, **({"plugins": plugins} if plugins else {})}


def config(*profiles: dict[str, Any], own: Any = None, **fields: Any) -> LoadedConfiguration:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "profiles": list(profiles or (profile(),)),
        **fields,
    }
    text = write_yaml(document)
    if own is not None:
        head = {"apiVersion": "moorage.dev/v1alpha1", "kind": "MoorageConfiguration"}
        text += "---\n" + write_yaml(head | own)
    return parse_config(text)


def fit(strategy: str) -> dict[str, Any]:
    args = {"scoringStrategy": {"type": strategy, "resources": [{"name": "cpu", "weight": 1}]}}
    only = {"disabled": [{"name": "*"}], "enabled": [{"name": "NodeResourcesFit", "weight": 1}]}
    arguments = [{"name": "NodeResourcesFit", "args": args}]
    return profile(score=only) | {"pluginConfig": arguments}


def reload(scheduler: Scheduler, new: LoadedConfiguration) -> None:
    registry, taking = in_tree_registry(), scheduler.parts.reload
    taking.put_in_force(taking.prepare(new, registry), registry)


def play(
    steps: Callable[[VirtualCluster], Awaitable[None]],
    begin: LoadedConfiguration,
    nodes: list[dict[str, Any]],
) -> None:
    clock = ManualClock()

    async def main() -> None:
        async with VirtualCluster(clock, nodes=nodes, config=begin) as cluster:
            await steps(cluster)
            cluster.scheduler.core.queue.validate()
            cluster.scheduler.core.cache.validate()

    run_virtual(main(), clock)


def _placed(cluster: VirtualCluster, name: str) -> bool:
    return bool(cluster.node_of(name))


def test_changed_arguments_decide_about_the_next_pod() -> None:
    async def steps(cluster: VirtualCluster) -> None:
        for name in ("a", "b", "c"):
            await cluster.create_objects(pod_manifest(name, cpu="1"))
            await cluster.until(partial(_placed, cluster, name))
            if name == "b":
                reload(cluster.scheduler, config(fit("MostAllocated")))
                await cluster.create_objects(pod_manifest("pin", cpu="1", node_name="n1"))
                await cluster.until(lambda: cluster.phase_of("pin") == "Running")
        assert {cluster.node_of("a"), cluster.node_of("b")} == {"n1", "n2"}
        assert cluster.node_of("c") == "n1"

    play(steps, config(fit("LeastAllocated")), [node_manifest("n1"), node_manifest("n2")])


def test_a_waiting_pod_is_tried_again_by_the_plugins_that_are_left() -> None:
    async def steps(cluster: VirtualCluster) -> None:
        await cluster.create_objects(pod_manifest("p"))
        await cluster.until(lambda: cluster.condition_of("p")[0] == "False")
        began = cluster.seconds
        new = profile(multiPoint={"disabled": [{"name": "TaintToleration"}]})
        reload(cluster.scheduler, config(new))
        await cluster.until(lambda: bool(cluster.node_of("p")))
        assert cluster.seconds - began < 15, "it need not wait for the flush after five minutes"

    play(steps, config(), [node_manifest("n1", taints=[TAINT])])


def test_a_waiting_group_is_tried_again_by_the_plugins_that_are_left() -> None:
    labels = {f"{GROUP}/name": "g", f"{GROUP}/min-available": "2"}

    async def steps(cluster: VirtualCluster) -> None:
        for name in ("a", "b"):
            await cluster.create_objects(pod_manifest(name, labels=labels))
        await cluster.until(lambda: cluster.condition_of("a")[0] == "False")
        new = profile(permit=COSCHEDULING, multiPoint={"disabled": [{"name": "TaintToleration"}]})
        reload(cluster.scheduler, config(new))
        await cluster.until(lambda: all(map(cluster.node_of, ("a", "b"))))

    play(steps, config(profile(permit=COSCHEDULING)), [node_manifest("n1", taints=[TAINT])])


def test_a_gated_pod_is_let_in_when_the_plugin_that_gates_it_is_gone() -> None:
    async def steps(cluster: VirtualCluster) -> None:
        gated = pod_manifest("p")
        gated["spec"]["schedulingGates"] = [{"name": "a"}]
        await cluster.create_objects(gated)
        await aio.sleep(1)
        queue = cluster.scheduler.core.queue
        assert [each.pod.name for each in queue.pending().gated] == ["p"]
        reload(
            cluster.scheduler,
            config(profile(multiPoint={"disabled": [{"name": "SchedulingGates"}]})),
        )
        await aio.sleep(1)
        assert not queue.pending().gated

    play(steps, config(), [node_manifest("n1")])


def test_pods_that_waited_for_an_added_profile_are_scheduled() -> None:
    async def steps(cluster: VirtualCluster) -> None:
        pod = pod_manifest("p")
        pod["spec"]["schedulerName"] = "batch"
        await cluster.create_objects(pod)
        await aio.sleep(2)
        assert not cluster.node_of("p")
        reload(cluster.scheduler, config(profile(), profile("batch")))
        await cluster.until(lambda: cluster.node_of("p") == "n1")

    play(steps, config(), [node_manifest("n1")])


def test_a_removed_profile_without_pods_is_no_longer_served() -> None:
    async def steps(cluster: VirtualCluster) -> None:
        reload(cluster.scheduler, config())
        pod = pod_manifest("p")
        pod["spec"]["schedulerName"] = "batch"
        await cluster.create_objects(pod)
        await cluster.create_objects(pod_manifest("other"))
        await cluster.until(lambda: cluster.node_of("other") == "n1")
        assert not cluster.node_of("p")

    play(steps, config(profile(), profile("batch")), [node_manifest("n1")])


def test_unchanged_plugins_keep_their_instance_and_reused_answers_are_dropped() -> None:
    async def steps(cluster: VirtualCluster) -> None:
        core = cluster.scheduler.core
        before, cycle = core.profiles["default-scheduler"], core.cycles["default-scheduler"]
        plugins = dict(before.plugins)
        reload(cluster.scheduler, config(fit("MostAllocated")))
        await aio.sleep(1)
        after = core.profiles["default-scheduler"].plugins
        changed = [name for name in after if after[name] is not plugins.get(name)]
        assert changed == ["NodeResourcesFit"]
        assert core.cycles["default-scheduler"] is not cycle

    play(steps, config(), [node_manifest("n1")])


def test_a_reload_is_told_in_log_count_and_event(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(V0)  # what is shown without -v

    async def steps(cluster: VirtualCluster) -> None:
        reload(cluster.scheduler, config(percentageOfNodesToScore=50))
        await aio.sleep(1)
        for fault in ("a: b", "c", "c"):
            cluster.scheduler.parts.reload.refused([fault])
        await aio.sleep(3)
        assert cluster.scheduler.facts.reloads == {"taken over": 1, "refused": 3}
        assert cluster.scheduler.parts.reload.config.scheduler.percentage_of_nodes_to_score == 50
        events = await cluster.events("kube-system")
        told = [(each["type"], each["reason"], each["message"]) for each in events]
        assert told == [
            ("Normal", "Reloaded", "A new configuration is in force; it serves default-scheduler"),
            ("Warning", "ReloadRefused", "The configuration in force stays: a: b"),
            ("Warning", "ReloadRefused", "The configuration in force stays: c"),
        ]

    play(steps, config(), [node_manifest("n1")])
    lines = [each.getMessage() for each in caplog.records if "reload" in each.getMessage()]
    assert lines == [
        "reload: a new configuration is in force; it serves default-scheduler",
        "reload refused: a: b",
        "reload refused: c",
        "reload refused: c",
    ]


EXTENDER = {"urlPrefix": "http://127.0.0.1:1/", "filterVerb": "f"}


@pytest.mark.parametrize(
    ("new", "reason"),
    [
        pytest.param(
            config(profile(queueSort={"enabled": [{"name": "QOSSort"}],
                                      "disabled": [{"name": "PrioritySort"}]}),
                   profile("busy", queueSort={"enabled": [{"name": "QOSSort"}],
                                              "disabled": [{"name": "PrioritySort"}]})),
            "plugins.queueSort: PrioritySort cannot change",
            id="another order of the queue",
        ),
        pytest.param(
            config(), "profile busy: cannot be removed while pods wait for it: 1 have no node",
            id="a removed profile with a waiting pod",
        ),
        pytest.param(
            config(profile(), profile("busy"), leaderElection={"leaderElect": True}),
            "leaderElection: cannot change", id="leader election",
        ),
        pytest.param(
            config(profile(), profile("busy"), podMaxBackoffSeconds=20),
            "podMaxBackoffSeconds: cannot change", id="times of the queue",
        ),
        pytest.param(
            config(profile(), profile("busy"), own={"pluginBudgetSeconds": 2.0}),
            "pluginBudgetSeconds: cannot change", id="a setting of moorage's own",
        ),
        pytest.param(
            config(profile(), profile("busy"), own={"tracing": {"samplingRatePerMillion": 1}}),
            "tracing: cannot change", id="traces",
        ),
        pytest.param(
            config(profile(), profile("busy"),
                   own={"profiles": [{"schedulerName": "busy", "groupMode": "permit"}]}),
            "profile busy: groupMode, groupOrders", id="how a profile places groups",
        ),
        pytest.param(
            config(profile(permit=COSCHEDULING), profile("busy")),
            "plugins that find pod groups", id="a plugin that finds pod groups",
        ),
        pytest.param(
            config(profile(preFilter={"enabled": [{"name": "CapacityScheduling"}]}),
                   profile("busy")),
            "a plugin waits for changes of elasticquotas", id="a plugin of a kind not watched",
        ),
        pytest.param(
            config(profile(), profile("busy"), extenders=[EXTENDER]),
            "extenders: a first extender", id="a first extender",
        ),
    ],
)  # fmt: skip
def test_a_change_that_needs_a_new_start_is_refused(new: LoadedConfiguration, reason: str) -> None:
    async def steps(cluster: VirtualCluster) -> None:
        pod = pod_manifest("p", cpu="100")
        pod["spec"]["schedulerName"] = "busy"
        await cluster.create_objects(pod)
        await cluster.until(lambda: cluster.condition_of("p")[0] == "False")
        core, before = cluster.scheduler.core, cluster.scheduler.parts.reload.config
        profiles = dict(core.profiles)
        with pytest.raises(ConfigError, match=reason):
            reload(cluster.scheduler, new)
        await aio.sleep(1)
        assert core.profiles == profiles
        assert cluster.scheduler.parts.reload.config is before

    play(steps, config(profile(), profile("busy")), [node_manifest("n1")])


def gpus(policy: str, **names: Any) -> LoadedConfiguration:
    enabled = {"enabled": [{"name": "GpuShare"}, {"name": policy, "weight": 100}]}
    arguments = [{"name": "GpuShare", "args": names}] if names else []
    return config(profile(multiPoint=enabled) | {"pluginConfig": arguments})


@pytest.mark.parametrize(
    ("new", "annotation", "kept"),
    [
        pytest.param(gpus("GpuPacking"), "alibabacloud.com/gpu-index", False, id="another policy"),
        pytest.param(gpus("GpuBestFit", indexAnnotation="a/b"), "a/b", False, id="another name"),
        pytest.param(gpus("GpuBestFit"), "alibabacloud.com/gpu-index", True, id="nothing"),
    ],
)
def test_plugins_of_a_family_are_made_together(
    new: LoadedConfiguration, annotation: str, kept: bool
) -> None:
    def family(cluster: VirtualCluster) -> set[Any]:
        (only,) = cluster.scheduler.core.profiles.values()
        return {plugin for name, plugin in only.plugins.items() if name.startswith("Gpu")}

    async def steps(cluster: VirtualCluster) -> None:
        share = {"alibabacloud.com/gpu-count": "1", "alibabacloud.com/gpu-milli": "600"}
        before = family(cluster)
        reload(cluster.scheduler, new)
        await cluster.create_objects(pod_manifest("p", annotations=share))
        await cluster.until(partial(_placed, cluster, "p"))
        assert bool(before & family(cluster)) is kept
        found = cluster.stored_pod("p")
        assert found is not None
        assert found["metadata"]["annotations"][annotation] == "0"

    one: dict[str, Any] = {"nvidia.com/gpu": "1"}
    play(steps, gpus("GpuBestFit"), [node_manifest("n1", **one), node_manifest("n2", **one)])
