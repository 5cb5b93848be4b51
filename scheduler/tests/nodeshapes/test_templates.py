"""Node templates: the default ones, those of files, and files that cannot be used."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from moorage.base.errors import UsageError
from moorage.nodeshapes.templates import default_nodes, load_nodes, name_of

LABELS = {
    "kubernetes.io/os": "linux",
    "kubernetes.io/arch": "amd64",
    "topology.kubernetes.io/region": "sandbox",
}


def raw(name: str = "n1", **status: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "status": status or {"allocatable": {"cpu": "4", "pods": "10"}},
    }


@pytest.mark.parametrize(
    ("count", "first", "last"),
    [
        pytest.param(3, "node-01", "node-03", id="two digits at least"),
        pytest.param(500, "node-001", "node-500", id="as many as are needed"),
    ],
)
def test_default_nodes_have_names_of_equal_length(count, first, last):
    names = [name_of(template) for template in default_nodes(count)]
    assert (names[0], names[-1], len(set(names))) == (first, last, count)
    assert names == sorted(names)


def test_default_nodes_are_spread_over_zones():
    labels = [template["metadata"]["labels"] for template in default_nodes(4)]  # type: ignore[index]
    assert [each["topology.kubernetes.io/zone"] for each in labels] == ["a", "b", "c", "a"]


@pytest.mark.parametrize(
    ("content", "names"),
    [
        pytest.param(yaml.safe_dump(raw()), ["n1"], id="one node in YAML"),
        pytest.param(json.dumps(raw()), ["n1"], id="one node in JSON"),
        pytest.param(
            yaml.safe_dump_all([raw("a"), None, raw("b")]), ["a", "b"], id="several documents"
        ),
        pytest.param(
            json.dumps({"kind": "List", "items": [raw("a"), raw("b")]}), ["a", "b"], id="a List"
        ),
        pytest.param(
            json.dumps(
                {
                    "kind": "NodeList",
                    "items": [{"metadata": {"name": "a"}, "status": {"capacity": {"cpu": "1"}}}],
                }
            ),
            ["a"],
            id="a NodeList, whose items do not say their kind",
        ),
    ],
)
def test_node_templates_are_read_from_files(tmp_path, content, names):
    path = tmp_path / "nodes"
    path.write_text(content)
    assert [name_of(template) for template in load_nodes(path)] == names


def test_fields_written_by_a_cluster_are_dropped_from_templates(tmp_path):
    node = raw()
    node["metadata"] |= {
        "uid": "u",
        "resourceVersion": "5",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        "labels": {"kubernetes.io/arch": "arm64", "pool": "x"},
    }
    node["spec"] = {
        "unschedulable": True,
        "podCIDR": None,
        "taints": [
            {"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"},
            {"key": "mine", "effect": "NoSchedule", "timeAdded": "2026-01-01T00:00:00Z"},
        ],
    }
    node["status"] |= {"conditions": [{"type": "Ready"}], "images": [{"names": ["a"]}]}
    path = tmp_path / "nodes.json"
    path.write_text(json.dumps(node))
    room = {"cpu": "4", "pods": "10"}
    assert load_nodes(path) == [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {
                "name": "n1",
                "labels": {
                    **LABELS,
                    "kubernetes.io/hostname": "n1",
                    "kubernetes.io/arch": "arm64",
                    "pool": "x",
                },
            },
            "spec": {"unschedulable": True, "taints": [{"key": "mine", "effect": "NoSchedule"}]},
            "status": {"allocatable": room, "capacity": room, "images": [{"names": ["a"]}]},
        }
    ]


@pytest.mark.parametrize(
    ("capacity", "allocatable", "expected"),
    [
        pytest.param(
            {"cpu": "2"}, None, {"cpu": "2", "pods": "110"}, id="capacity stands in for allocatable"
        ),
        pytest.param(
            {"cpu": "2"},
            {"cpu": "1", "pods": "5"},
            {"cpu": "1", "pods": "5"},
            id="allocatable is kept",
        ),
    ],
)
def test_allocatable_of_a_template_follows_from_its_capacity(
    tmp_path, capacity, allocatable, expected
):
    status = {"capacity": capacity} | ({"allocatable": allocatable} if allocatable else {})
    path = tmp_path / "nodes.json"
    path.write_text(json.dumps(raw(**status)))
    (template,) = load_nodes(path)
    assert template["status"]["allocatable"] == expected  # type: ignore[index]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param("", "there are no nodes in it", id="an empty file"),
        pytest.param("a: [", "not YAML", id="not YAML"),
        pytest.param("{]", "not JSON", id="not JSON"),
        pytest.param("- 1", "not a Kubernetes object", id="no object"),
        pytest.param("kind: Pod", "a Pod where Nodes should be", id="a pod"),
        pytest.param("a: b", "a thing without kind where Nodes should be", id="no kind"),
        pytest.param(
            json.dumps(raw("Bad_Name")), "node 1: metadata.name 'Bad_Name': ", id="a bad name"
        ),
        pytest.param(
            json.dumps(raw(allocatable={"cpu": "lots"})),
            r"node 1 \(n1\): status.allocatable.cpu: 'lots': quantities must match",
            id="an impossible quantity",
        ),
        pytest.param(
            json.dumps(raw(capacity={"cpu": "-1"})),
            r"node 1 \(n1\): status.capacity.cpu is negative",
            id="a negative quantity",
        ),
        pytest.param(
            json.dumps(raw(images=[])),
            "no status.allocatable and no status.capacity, .*; add one of them",
            id="no resources at all",
        ),
        pytest.param(
            json.dumps({"kind": "List", "items": [raw(), raw()]}),
            "there are two nodes named n1",
            id="a name twice",
        ),
        pytest.param(
            json.dumps({**raw(), "spec": {"taints": "none"}}),
            r"node 1: Node n1: Expected `array`, got `str`",
            id="a field of the wrong type",
        ),
    ],
)
def test_faulty_template_files_are_refused(tmp_path, content, message):
    path = tmp_path / "nodes"
    path.write_text(content)
    with pytest.raises(UsageError, match=message) as caught:
        load_nodes(path)
    assert str(path) in str(caught.value)


def test_a_missing_template_file_is_refused(tmp_path):
    with pytest.raises(UsageError, match="cannot read the nodes: No such file"):
        load_nodes(tmp_path / "nowhere")
