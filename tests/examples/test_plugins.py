"""The sample plugins do what their first lines say, loaded as ``--plugin`` loads them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.api.resources import PODS
from moorage.base.clock import ManualClock
from moorage.base.errors import ConfigError
from moorage.framework.loading import load_plugin
from moorage_sandbox.testing.builders import Manifest, node, node_manifest, pod, pod_manifest
from moorage_sandbox.testing.plugins import StillCluster, with_plugins
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual

SAMPLES = Path(__file__).resolve().parents[2] / "examples" / "plugins"


def sample(reference: str) -> str:
    return f"{SAMPLES}/{reference}"


def in_time(
    reference: str, test: Callable[[VirtualCluster], Awaitable[None]], *nodes: Manifest
) -> None:
    """Run a test in a cluster whose scheduler has a sample plugin."""
    clock = ManualClock()
    config, registry = with_plugins([sample(reference)])

    async def main() -> None:
        given = nodes or (node_manifest("n1"),)
        async with VirtualCluster(clock, nodes=given, config=config, registry=registry) as cluster:
            await test(cluster)

    run_virtual(main(), clock)


def test_no_spot() -> None:
    cluster = StillCluster(
        [node("calm"), node("spot", labels={"example.com/spot": "true"})],
        plugins=[sample("no_spot.py:no_spot")],
    )
    reason = "spot node, and the pod is not interruptible"
    assert cluster.refused(pod()) == {"spot": (reason,)}
    assert cluster.refused(pod(labels={"interruptible": "true"})) == {}


def test_prefer_green() -> None:
    green = node_manifest("green")
    green["metadata"]["annotations"] = {"example.com/green-percent": "80"}
    scores = {}

    async def look(cluster: VirtualCluster) -> None:
        await cluster.create_objects(pod_manifest("p"))
        await cluster.until(lambda: cluster.node_of("p") != "")
        scores["p"] = cluster.node_of("p")

    in_time("prefer_green.py:prefer_green", look, node_manifest("black"), green)
    assert scores == {"p": "green"}


@pytest.mark.parametrize(
    ("args", "refused"),
    [
        pytest.param({}, ["full"], id="ten percent by default"),
        pytest.param({"cpuPercent": 60}, ["full", "half"], id="as much as the arguments say"),
        pytest.param({"cpuPercent": 0}, [], id="none at all"),
    ],
)
def test_keep_headroom(args: dict[str, Any], refused: list[str]) -> None:
    cluster = StillCluster(
        [node("full"), node("half"), node("idle")],
        plugins=[sample("keep_headroom.py:KeepHeadroom")],
        args={"KeepHeadroom": args},
        pods={"full": [pod("a", cpu="3900m")], "half": [pod("b", cpu="2")]},
    )
    assert sorted(cluster.refused(pod())) == refused


def test_the_arguments_of_keep_headroom_are_read_strictly() -> None:
    with pytest.raises(ConfigError, match="cpuPercents"):
        StillCluster(
            plugins=[sample("keep_headroom.py:KeepHeadroom")],
            args={"KeepHeadroom": {"cpuPercents": 5}},
        )


def test_fewest_pods() -> None:
    cluster = StillCluster(
        [node("two"), node("one"), node("none")],
        plugins=[sample("fewest_pods.py:FewestPods")],
        alone=True,
        pods={"two": [pod("a"), pod("b")], "one": [pod("c")]},
    )
    assert cluster.scores(pod(), "FewestPods") == {"none": 0, "one": -1, "two": -2}
    assert cluster.node_of(pod()) == "none"
    evaluated = cluster.evaluation(pod()).scores
    assert evaluated is not None
    assert evaluated.plugins["FewestPods"].normalized_n.tolist() == [100, 50, 0]


def normalized(cluster: StillCluster, plugin: str) -> dict[str, int]:
    """Return the normalized scores of a plugin, by node."""
    found = cluster.evaluation(pod())
    assert found.scores is not None
    scores = found.scores.plugins[plugin].normalized_n.tolist()
    return dict(zip(found.feasible, scores, strict=True))


def test_pod_state() -> None:
    leaving = pod("a")
    leaving = msgspec.structs.replace(
        leaving,
        metadata=msgspec.structs.replace(
            leaving.metadata, deletion_timestamp="2026-01-01T00:00:00Z"
        ),
    )
    cluster = StillCluster(
        [node("left"), node("other")],
        plugins=[sample("pod_state.py:PodState")],
        alone=True,
        pods={"left": [leaving]},
    )
    assert normalized(cluster, "PodState") == {"left": 100, "other": 0}


@pytest.mark.parametrize(
    ("args", "scores"),
    [
        pytest.param(
            {"metadataType": "Number", "scoringStrategy": "Highest"},
            {"a": 100, "b": 50, "c": 1, "none": 0, "text": 0},
            id="the highest number",
        ),
        pytest.param(
            {"metadataType": "Number", "scoringStrategy": "Lowest"},
            {"a": 1, "b": 50, "c": 100, "none": 0, "text": 0},
            id="the lowest number",
        ),
        pytest.param(
            {"metadataType": "Number", "scoringStrategy": "Highest", "defaultValue": "30"},
            {"a": 100, "b": 50, "c": 1, "none": 100, "text": 0},
            id="a default for nodes without the key",
        ),
        pytest.param(
            {
                "metadataType": "Timestamp",
                "scoringStrategy": "Newest",
                "timestampFormat": "2006-01-02",
            },
            {"a": 0, "b": 0, "c": 0, "none": 0, "text": 1},
            id="a time in a format of Go",
        ),
    ],
)
def test_node_metadata(args: dict[str, str], scores: dict[str, int]) -> None:
    values = {"a": "30", "b": "20", "c": "10", "text": "2026-01-02"}
    given = [node(name, labels={"example.com/key": value}) for name, value in values.items()]
    cluster = StillCluster(
        [*given, node("none")],
        plugins=[sample("node_metadata.py:NodeMetadata")],
        alone=True,
        args={
            "NodeMetadata": {
                "metadataKey": "example.com/key",
                "metadataSource": "Label",
                **args,
            }
        },
    )
    assert normalized(cluster, "NodeMetadata") == scores


def test_fewest_pods_where_all_have_as_many() -> None:
    cluster = StillCluster(
        [node("a"), node("b")], plugins=[sample("fewest_pods.py:FewestPods")], alone=True
    )
    assert cluster.node_of(pod()) == "a"
    assert not cluster.failures


def test_on_hold_says_why() -> None:
    cluster = StillCluster(plugins=[sample("on_hold.py:on_hold")])
    held = pod(annotations={"example.com/hold": "the audit"})
    assert (cluster.gated(held), cluster.gated(pod())) == ("on hold: the audit", "")


def test_on_hold_lets_go() -> None:
    async def hold_and_let_go(cluster: VirtualCluster) -> None:
        held = pod_manifest("p", annotations={"example.com/hold": "the audit"})
        await cluster.create_objects(held, pod_manifest("q"))
        await cluster.until(lambda: cluster.node_of("q") == "n1")
        assert cluster.node_of("p") == ""
        changes = {"metadata": {"annotations": {"example.com/hold": None}}}
        await cluster.patch_object(PODS, "p", changes, namespace="default")
        await cluster.until(lambda: cluster.node_of("p") == "n1")

    in_time("on_hold.py:on_hold", hold_and_let_go)


def test_tell_owner() -> None:
    async def look(cluster: VirtualCluster) -> None:
        await cluster.create_objects(
            pod_manifest("p", annotations={"example.com/owner": "Ada"}), pod_manifest("q")
        )
        await cluster.until(lambda: all(cluster.placements().values()))
        await cluster.until(lambda: cluster.phase_of("q") == "Running")
        found = [event["message"] for event in await cluster.events("p", reason="PlaceFound")]
        assert found == ["Ada, your pod p runs on n1"]
        assert await cluster.events("q", reason="PlaceFound") == []

    in_time("tell_owner.py:TellOwner", look)


def test_warm_up() -> None:
    async def look(cluster: VirtualCluster) -> None:
        await cluster.create_objects(
            pod_manifest("cold", annotations={"example.com/warm-up-seconds": "20"}),
            pod_manifest("warm"),
        )
        await cluster.until(lambda: cluster.node_of("warm") == "n1", seconds=5)
        assert cluster.node_of("cold") == ""
        await cluster.until(lambda: cluster.node_of("cold") == "n1", seconds=30)
        assert cluster.seconds >= 20

    in_time("warm_up.py:WarmUp", look)


def test_each_sample_says_how_to_load_it() -> None:
    for file in sorted(SAMPLES.glob("*.py")):
        (line,) = (line for line in file.read_text().splitlines() if "--plugin" in line)
        reference = line.partition("--plugin ")[2].strip()
        assert load_plugin(str(SAMPLES.parents[1] / reference)).origin.endswith(reference)
