"""Configurations that decide otherwise: another node, no node, and what the report says of it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from moorage.base import aio
from moorage.config.own import LoadedConfiguration
from moorage.plugins.from_outside import with_plugins
from moorage.shadow.comparison import Comparison, Outcome, PluginScores
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from scheduler.tests.shadow.clusters import Acts, config_of, shadowed

PACKING = """
    apiVersion: kubescheduler.config.k8s.io/v1
    kind: KubeSchedulerConfiguration
    profiles:
    - schedulerName: default-scheduler
      pluginConfig:
      - name: NodeResourcesFit
        args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
      plugins:
        multiPoint:
          disabled: [{name: NodeResourcesBalancedAllocation}]
"""
SSD_ONLY = """
    apiVersion: kubescheduler.config.k8s.io/v1
    kind: KubeSchedulerConfiguration
    profiles:
    - schedulerName: default-scheduler
      pluginConfig:
      - name: NodeAffinity
        args:
          addedAffinity:
            requiredDuringSchedulingIgnoredDuringExecution:
              nodeSelectorTerms:
              - matchExpressions: [{key: disk, operator: In, values: [ssd]}]
"""
NODES = [node_manifest("n1"), node_manifest("n2")]


def one_after_another(*pods: str, cpu: str = "1") -> Acts:
    """Return acts that create pods, each long after the one before."""

    async def acts(cluster: VirtualCluster) -> None:
        for name in pods:
            await cluster.create_objects(pod_manifest(name, cpu=cpu))
            await aio.sleep(2.0)

    return acts


def without_time(found: list[Comparison]) -> list[Comparison]:
    return [msgspec.structs.replace(each, time="") for each in found]


def test_another_node_is_told_with_the_scores_of_both() -> None:
    seen = shadowed(one_after_another("a", "b"), nodes=NODES, config=config_of(PACKING))

    first, second = without_time(seen.comparisons)
    other = first.real_node
    assert first == Comparison(
        time="",
        pod="default/a",
        about="binding",
        outcome=Outcome.EQUAL,
        real_node=other,
        shadow_node=other,
    )
    real = {"n1": "n2", "n2": "n1"}[other]
    assert second == Comparison(
        time="",
        pod="default/b",
        about="binding",
        outcome=Outcome.OTHER_NODE,
        real_node=real,
        shadow_node=other,
        plugin="NodeResourcesFit",
        reason=f"NodeResourcesFit scores {other} 25 higher than {real} (totals 350 and 325)",
        scores=(
            PluginScores("TaintToleration", 300, 300),
            PluginScores("NodeResourcesFit", 25, 50),
            PluginScores("DynamicResources", 0, 0),
            PluginScores("ImageLocality", 0, 0),
        ),
    )
    assert seen.report.plugins == {"NodeResourcesFit": 1}
    assert (seen.report.agree, seen.report.differ, seen.report.agreement) == (1, 1, 0.5)
    courses = seen.report.courses
    assert courses is not None
    assert (courses.real.empty_nodes, courses.own.empty_nodes) == (0, 1)
    assert (courses.own_bound, courses.own.pods, courses.own.pending) == (2, 2, 0)


ONLY_N2 = """
from moorage import plugin

@plugin.filter
def only_n2(pod, node):
    return True if node.name == "n2" else "only n2 is mine"
"""


def test_a_plugin_that_rejects_the_real_node_is_named(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(ONLY_N2)
    known = with_plugins(LoadedConfiguration(), [f"{file}:only_n2"])

    seen = shadowed(
        one_after_another("a"),
        nodes=[node_manifest("n1"), node_manifest("n2", cpu="2")],
        config=known.config,
        registry=known.registry,
    )

    assert without_time(seen.comparisons) == [
        Comparison(
            time="",
            pod="default/a",
            about="binding",
            outcome=Outcome.OTHER_NODE,
            real_node="n1",
            shadow_node="n2",
            plugin="OnlyN2",
            reason="OnlyN2 rejects n1: only n2 is mine",
            rejections={"OnlyN2": ("only n2 is mine",)},
        )
    ]


def test_a_pod_that_no_node_takes_is_told_with_the_filter_that_rejects_the_real_node() -> None:
    seen = shadowed(one_after_another("a"), nodes=NODES[:1], config=config_of(SSD_ONLY))

    reason = "node(s) didn't match scheduler-enforced node affinity"
    assert without_time(seen.comparisons) == [
        Comparison(
            time="",
            pod="default/a",
            about="binding",
            outcome=Outcome.NOT_PLACED,
            real_node="n1",
            plugin="NodeAffinity",
            reason=f"NodeAffinity rejects n1: {reason}",
            rejections={"NodeAffinity": (reason,)},
        )
    ]
    courses = seen.report.courses
    assert courses is not None
    assert (courses.real.pending, courses.own.pending) == (0, 1)


def test_a_plugin_that_breaks_is_a_difference_and_ends_nothing(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(ONLY_N2.replace("True if node.name", "1 / 0 if node.name"))
    known = with_plugins(LoadedConfiguration(), [f"{file}:only_n2"])

    seen = shadowed(
        one_after_another("a", "b"), nodes=NODES, config=known.config, registry=known.registry
    )

    assert [each.outcome for each in seen.comparisons] == [Outcome.NOT_PLACED] * 2
    assert "division by zero" in seen.comparisons[0].reason


def test_pods_of_other_schedulers_are_not_compared_and_take_room_in_both_courses() -> None:
    config = config_of(PACKING.replace("default-scheduler", "packing"))

    seen = shadowed(one_after_another("a", "b"), nodes=NODES, config=config)

    assert seen.comparisons == []
    assert seen.report.agreement is None
    courses = seen.report.courses
    assert courses is not None
    assert courses.real == courses.own
    assert courses.own.pods == 2


def waiting_for(seconds: float, *pods: Manifest) -> Acts:
    """Return acts that create pods and wait."""

    async def acts(cluster: VirtualCluster) -> None:
        await cluster.create_objects(*pods)
        await aio.sleep(seconds)

    return acts


def test_a_pod_that_waits_really_and_would_be_bound_is_told_once() -> None:
    acts = waiting_for(90.0, pod_manifest("a", cpu="1"), pod_manifest("giant", cpu="64"))

    seen = shadowed(acts, nodes=NODES[:1], real=config_of(SSD_ONLY))

    assert without_time(seen.comparisons) == [
        Comparison(
            time="",
            pod="default/a",
            about="pending",
            outcome=Outcome.PLACED,
            shadow_node="n1",
            reason="it waits really, and the configuration would bind it",
        ),
        Comparison(time="", pod="default/giant", about="pending", outcome=Outcome.SAME),
    ]


def test_a_pod_that_has_just_been_rejected_is_not_compared() -> None:
    acts = waiting_for(30.0, pod_manifest("a", cpu="1"))

    seen = shadowed(acts, nodes=NODES[:1], real=config_of(SSD_ONLY))

    assert seen.comparisons == []
