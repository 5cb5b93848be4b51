"""Suggestions of pods that wait for GPUs: smaller shares, fewer GPUs, further models."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.config.load import parse_config
from moorage.config.own import LoadedConfiguration
from moorage.explain.answer import Explanation
from moorage.snapshot.pod_info import PodInfo
from moorage_sandbox.testing.builders import Manifest, node_manifest
from scheduler.tests.explain.applying import applied
from scheduler.tests.explain.clusters import bound, explained, inputs_of, pod_of, waiting

PREFIX = "alibabacloud.com/gpu-"
GPU = "nvidia.com/gpu"
_CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins: {multiPoint: {enabled: [{name: GpuShare}, {name: GpuBestFit}]}}
"""


def config() -> LoadedConfiguration:
    return parse_config(_CONFIG, source="the test")


def gpu_node(name: str, count: int, model: str) -> Manifest:
    labels = {f"{PREFIX}card-model": model}
    resources: dict[str, Any] = {GPU: str(count)}
    return node_manifest(name, cpu="8", labels=labels, **resources)


def asks(count: str, milli: str, models: str = "", index: str = "") -> dict[str, str]:
    """Return the annotations of a pod."""
    found = {"count": count, "milli": milli, "card-model": models, "index": index}
    return {f"{PREFIX}{name}": value for name, value in found.items() if value}


def cluster() -> list[Manifest]:
    """T4: shares of 300 and 650 thousandths are free. V100: one GPU of two."""
    return [
        gpu_node("t4", 2, "T4"),
        gpu_node("v100", 2, "V100"),
        bound("a", "t4", annotations=asks("1", "700", index="0")),
        bound("b", "t4", annotations=asks("1", "350", index="1")),
        bound("c", "v100", annotations=asks("1", "1000", index="0")),
    ]


def told(found: Explanation) -> list[str]:
    return [each.text for each in found.suggestions if each.kind == "gpu"]


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param(
            asks("1", "800", "T4"),
            ["ask for 650 thousandths of a GPU instead of 800", "admit GPUs of model V100 too"],
            id="a share, on T4",
        ),
        pytest.param(
            asks("1", "1000", "T4"),
            [
                "admit GPUs of model V100 too",
                "ask for 650 thousandths of a GPU instead of a whole GPU",
            ],
            id="a whole GPU, on T4",
        ),
        pytest.param(asks("2", "1000"), ["ask for 1 GPU instead of 2"], id="two GPUs"),
        pytest.param(asks("2", "1000", "T4"), [], id="two GPUs on T4, where none is whole"),
        pytest.param(asks("1", "500"), [], id="a share that fits"),
    ],
)
def test_each_suggestion_is_the_smallest_and_places_the_pod(
    annotations: dict[str, str], expected: list[str]
) -> None:
    manifests = [*cluster(), waiting("p", annotations=annotations)]
    found = explained(*manifests, config=config())
    assert told(found) == expected
    for way in found.suggestions:
        if way.kind != "gpu":
            continue
        inputs = inputs_of(*applied(way, manifests), config=config())
        cycle = inputs.fill().core.cycles["default-scheduler"]
        assert cycle.decide(PodInfo(pod_of(inputs, "p"))).node_name == way.node


def test_a_node_that_lacks_something_else_does_not_count() -> None:
    """The largest free share is on a node that lacks CPU."""
    full = bound("d", "t4", cpu="8")
    gpu = gpu_node("p100", 1, "P100")
    holder = bound("e", "p100", annotations=asks("1", "900", index="0"))
    pod = waiting("p", annotations=asks("1", "800", "T4|P100"), cpu="1")
    found = explained(*cluster(), full, gpu, holder, pod, config=config())
    assert "ask for 100 thousandths of a GPU instead of 800" in told(found)


def test_a_pod_that_asks_by_resource_is_offered_a_smaller_request() -> None:
    pod = waiting("p")
    pod["spec"]["containers"][0]["resources"] = {"requests": {GPU: "2"}, "limits": {GPU: "2"}}
    found = explained(*cluster(), pod, config=config())
    assert told(found) == []
    texts = [each.text for each in found.suggestions]
    assert f"request at most 1 {GPU} instead of 2" in texts
