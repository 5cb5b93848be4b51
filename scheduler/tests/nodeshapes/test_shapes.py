"""Shapes of nodes: how they are written, and the nodes they make."""

from __future__ import annotations

import pytest

from moorage.base.errors import UsageError
from moorage.nodeshapes.shapes import Shape, parse_shape, shaped_nodes
from moorage.nodeshapes.templates import DEFAULT_RESOURCES, default_nodes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            "cpu=96,memory=1Ti,gpu=8",
            Shape(
                resources={**DEFAULT_RESOURCES, "cpu": "96", "memory": "1Ti", "nvidia.com/gpu": "8"}
            ),
            id="sizes, a gpu written short",
        ),
        pytest.param(
            "cpu=4,label:pool=train,label:example.com/tier=1,taint=gpu=yes:NoSchedule,taint=spot:NoExecute",
            Shape(
                resources={**DEFAULT_RESOURCES, "cpu": "4"},
                labels={"pool": "train", "example.com/tier": "1"},
                taints=(
                    {"key": "gpu", "value": "yes", "effect": "NoSchedule"},
                    {"key": "spot", "effect": "NoExecute"},
                ),
            ),
            id="labels and taints",
        ),
        pytest.param(
            "p4d.24xlarge,memory=1000Gi,count=3",
            Shape(
                resources={
                    **DEFAULT_RESOURCES,
                    "cpu": "96",
                    "memory": "1000Gi",
                    "nvidia.com/gpu": "8",
                },
                labels={"node.kubernetes.io/instance-type": "p4d.24xlarge"},
                count=3,
            ),
            id="an instance type, one size of it changed, and a count",
        ),
        pytest.param(
            "resource=example.com/fpga=2,hugepages-2Mi=1Gi",
            Shape(resources={**DEFAULT_RESOURCES, "example.com/fpga": "2", "hugepages-2Mi": "1Gi"}),
            id="other extended resources, and huge pages",
        ),
    ],
)
def test_a_shape_is_read(text: str, expected: Shape) -> None:
    assert parse_shape(text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "p4d.24xlrge", "'p4d.24xlrge' is no known instance type, the nearest are p4d", id="typo"
        ),
        pytest.param("cpu=lots", "cpu=lots: quantities must match", id="no quantity"),
        pytest.param("mem=96Gi", "mem=96Gi: write memory=96Gi", id="memory by another word"),
        pytest.param("cpu=96,gpus=8", "gpus=8: write gpu=8", id="a plural"),
        pytest.param("cpu=96,gpu", "gpu: write gpu=AMOUNT", id="no amount"),
        pytest.param("gpu=0.5", "gpu=0.5: extended resources are whole", id="half a gpu"),
        pytest.param(
            "resource=a.b/c=1500m", "=1500m: extended resources are whole", id="half a resource"
        ),
        pytest.param(
            "pool=train",
            "there is no key 'pool': write label:pool=train for a label, or resource=pool=train",
            id="a label without its word",
        ),
        pytest.param("cpu=9 memory=1Ti", "put a comma between two parts", id="no comma"),
        pytest.param("", "'' is no known instance type, for example m5.large", id="nothing"),
        pytest.param("cpu=-1", "cpu=-1: an amount is not negative", id="negative"),
        pytest.param("count=few", "count=few: write a whole number", id="no count"),
        pytest.param("taint=a=b:Never", "write KEY=VALUE:EFFECT", id="no effect"),
        pytest.param("label:a b=c", "label:a b=c: name part must", id="no label key"),
        pytest.param("label:a=b c", "label:a=b c: a valid label must", id="no label value"),
    ],
)
def test_a_faulty_part_is_named(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_shape(text)
    assert str(caught.value).startswith(f"--shape {text}: ")
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("shapes", "count", "cpus"),
    [
        pytest.param(("cpu=1",), 3, "111", id="one shape for all"),
        pytest.param(("cpu=1", "cpu=2"), 5, "11122", id="shared evenly, the first gets one more"),
        pytest.param(("cpu=1,count=1", "cpu=2"), 3, "122", id="a count, and the rest"),
        pytest.param(("cpu=1,count=1", "cpu=2,count=2"), None, "122", id="the sum of the counts"),
    ],
)
def test_shapes_share_the_nodes(shapes: tuple[str, ...], count: int | None, cpus: str) -> None:
    nodes = shaped_nodes([parse_shape(text) for text in shapes], count)
    assert [node["status"]["allocatable"]["cpu"] for node in nodes] == list(cpus)  # type: ignore[index]
    names = [node["metadata"]["name"] for node in nodes]  # type: ignore[index]
    assert names == [node["metadata"]["name"] for node in default_nodes(len(nodes))]  # type: ignore[index]


@pytest.mark.parametrize(
    ("shapes", "count", "message"),
    [
        pytest.param(("cpu=1",), None, "say how many nodes in all", id="no count at all"),
        pytest.param(("count=3",), 2, "count 3 nodes, and there should be 2", id="too many"),
        pytest.param(("count=3",), 4, "count 3 nodes, and there should be 4", id="too few"),
    ],
)
def test_counts_agree(shapes: tuple[str, ...], count: int | None, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        shaped_nodes([parse_shape(text) for text in shapes], count)


def test_a_shaped_node_is_whole() -> None:
    (node,) = shaped_nodes([parse_shape("gpu=8,label:pool=train,taint=gpu:NoSchedule")], 1)
    resources = {**DEFAULT_RESOURCES, "nvidia.com/gpu": "8"}
    (default,) = default_nodes(1)
    assert node == {
        **default,
        "metadata": {
            "name": "node-01",
            "labels": default["metadata"]["labels"] | {"pool": "train"},  # type: ignore[index]
        },
        "spec": {"taints": [{"key": "gpu", "effect": "NoSchedule"}]},
        "status": {"capacity": resources, "allocatable": resources},
    }
