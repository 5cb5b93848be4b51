"""``moorage.Cluster`` and the tables of results, as a Python program uses them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import moorage
from lab.tests.traces.scenes import nodes, pods
from moorage.base.errors import ConfigError, UsageError
from moorage_lab.traces.page import page


def node(name: str, cpu: str = "4") -> dict[str, Any]:
    allocatable = {"cpu": cpu, "memory": "8Gi", "pods": "10"}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": {"allocatable": allocatable},
    }


def pod(name: str, cpu: str = "1", **spec: Any) -> dict[str, Any]:
    resources = {"requests": {"cpu": cpu}}
    containers = [{"name": "main", "image": "app", "resources": resources}]
    metadata = {"name": name, "namespace": "x"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"containers": containers, **spec},
    }


def test_a_dump_is_a_cluster_in_which_pods_are_placed(tmp_path: Path) -> None:
    file = tmp_path / "dump.json"
    there = pod("there", "3", nodeName="n1")
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [node("n1"), there]}))
    cluster = moorage.Cluster.from_dump(file)
    found = cluster.place([pod("fits"), pod("waits", "2")])
    assert list(found.rows) == [
        {"namespace": "x", "name": "fits", "node": "n1", "reason": ""},
        {
            "namespace": "x",
            "name": "waits",
            "node": "",
            "reason": "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, "
            "preemption: 0/1 nodes are available: 1 No preemption victims found for incoming pod.",
        },
    ]
    assert list(cluster.nodes.where(resource="cpu").rows) == [
        {"node": "n1", "resource": "cpu", "requested": 4000, "allocatable": 4000}
    ]
    assert [row["name"] for row in cluster.pods.rows] == ["there", "fits", "waits"]
    assert repr(cluster) == "Cluster of 1 nodes and 3 pods"


def test_fragmentation_is_the_free_share_that_the_pods_cannot_use() -> None:
    cluster = moorage.Cluster([node("n1"), node("n2"), pod("a", "3", nodeName="n1")])
    # Of 5 free cores, the one of n1 is too few for a pod of 3.
    assert cluster.fragmentation() == {"cpu": pytest.approx(0.2)}
    cluster.place(pod("b", "3"))
    assert cluster.fragmentation() == {"cpu": 1.0}


def test_pods_are_placed_from_a_yaml_text() -> None:
    text = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n"
    text += "spec:\n  containers: [{name: m, image: a}]\n"
    assert moorage.Cluster([node("n1")]).place(text).columns["node"] == ["n1"]


def test_a_plugin_of_ones_own_decides(tmp_path: Path) -> None:
    file = tmp_path / "own.py"
    file.write_text(
        "from moorage import plugin\n\n@plugin.filter\ndef only_b(pod, node):\n"
        "    return None if node.name == 'b' else 'not b'\n"
    )
    cluster = moorage.Cluster([node("a"), node("b")], plugins=[f"{file}:only_b"])
    assert cluster.place([pod("p"), pod("q")]).columns["node"] == ["b", "b"]


@pytest.mark.parametrize(
    ("objects", "placed", "message"),
    [
        pytest.param([], [], "there are no nodes in the cluster", id="no nodes"),
        pytest.param(
            [node("n1")],
            [node("n2")],
            "only pods are placed, and there is a Node",
            id="a node to place",
        ),
        pytest.param(
            [node("n1"), pod("p", nodeName="n1")],
            [pod("p")],
            "there is a pod x/p already",
            id="a name that is taken",
        ),
        pytest.param(
            [node("n1")],
            [pod("p", "-1")],
            "Pod p would be refused: spec.containers[0].resources.requests[cpu]: Invalid value: "
            '"-1": must be greater than or equal to 0',
            id="a negative request",
        ),
    ],
)
def test_what_cannot_be_placed_is_refused(
    objects: list[dict[str, Any]], placed: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises((UsageError, ConfigError)) as error:
        moorage.Cluster(objects).place(placed)
    assert str(error.value) == message


def test_results_show_themselves_and_become_data_frames() -> None:
    found = moorage.simulate({"nodes": [nodes()], "pods": [pods("1", count=2)], "name": "a < b"})
    assert "<h3>a &lt; b</h3>" in found._repr_html_()
    assert found.pods._repr_html_().count("<tr>") == 3
    assert repr(found.pods).startswith("Table of 2 rows: configuration, seed, namespace, name")
    pytest.importorskip("pyarrow")
    table = found.pods.to_arrow()
    assert table.num_rows == 2
    assert table.column("node").to_pylist() == found.pods.columns["node"]


def test_the_page_is_whole_and_the_same_each_time() -> None:
    pytest.importorskip("matplotlib")
    scenario = {
        "nodes": [nodes(2)],
        "pods": [pods("1", count=4, arrivals={"kind": "spaced"})],
        "configurations": [{"name": "a"}, {"name": "b", "weights": {"ImageLocality": 3}}],
        "seeds": 2,
    }
    found = moorage.simulate(scenario)
    text = page(found)
    assert text.count("<svg") == 3  # cpu and memory in use, and pods without a node
    for title in ("Figures", "Differences", "Over time", "Runs"):
        assert f"<h2>{title}</h2>" in text
    for digest in found.runs.columns["digest"]:
        assert digest in text
    assert "src=" not in text
    assert "@import" not in text
    assert page(found) == text
