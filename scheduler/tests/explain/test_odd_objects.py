"""Objects that a file has and no API server: each gets a sentence, none a traceback."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.base.clock import SystemClock
from moorage.config.own import LoadedConfiguration
from moorage.explain.explaining import QUICK, explain_by_name
from moorage.plugins.in_tree import in_tree_registry
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.objects import read_objects

NODE = {
    "apiVersion": "v1",
    "kind": "Node",
    "metadata": {"name": "n"},
    "status": {"allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10"}},
}


def pod(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "a", "namespace": "default", "uid": "1"},
        "spec": {"containers": [{"name": "c"}], **spec},
    }


def requests(**amounts: str) -> dict[str, Any]:
    return pod(containers=[{"name": "c", "resources": {"requests": amounts}}])


def sentence(*objects: Any) -> str:
    inputs = ClusterInputs(
        objects=read_objects(msgspec.json.encode(objects), "file"),
        registry=in_tree_registry(),
        config=LoadedConfiguration(),
        now_ns=SystemClock().now_ns(),
    )
    return explain_by_name(inputs, "default", "a", QUICK).sentence


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        pytest.param(
            pod(nodeName="ghost"),
            "bound to ghost, a node that does not exist",
            id="a pod on a node that is not there",
        ),
        pytest.param(
            requests(cpu="10P"),
            "never fits here, not even on an empty node, because of cpu (it requests 10P, the "
            "largest of these nodes has 8)",
            id="more than 64 bits of millicores",
        ),
    ],
)
def test_the_sentence_about_an_odd_pod(manifest: Any, expected: str) -> None:
    assert sentence(NODE, manifest) == expected


@pytest.mark.parametrize(
    "name",
    [pytest.param({}, id="no name"), pytest.param({"schedulerName": ""}, id="an empty name")],
)
def test_a_pod_without_a_schedulername_has_the_default_one(name: Any) -> None:
    assert "does not serve" not in sentence(NODE, pod(**name))


@pytest.mark.parametrize(
    ("node", "problem"),
    [
        pytest.param({"metadata": {}}, "it has no metadata.name", id="a node without a name"),
        pytest.param(
            {"status": {"allocatable": {"cpu": "-8"}}},
            "status.allocatable[cpu]: -8 is negative",
            id="a node with a negative amount",
        ),
    ],
)
def test_a_node_that_makes_no_sense_is_left_out(node: Any, problem: str) -> None:
    objects = read_objects(msgspec.json.encode([{**NODE, **node}]), "file")
    assert [each.problem for each in objects.unreadable] == [problem]
    assert not objects.nodes
