"""Nodes and pods from files, traces and histories; bad rows with their line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from lab.tests.traces.scenes import column, nodes, once
from moorage.base.errors import ConfigError, UsageError
from moorage_lab.traces.in_python import simulate
from moorage_lab.traces.sources import manifests_of
from moorage_sandbox.testing.builders import node_manifest
from sandbox.tests.apiserver.harness import pod

_PODS = """name,cores,ram,start,stop,team
a,1,2,100,160,red
b,2,4,110,,blue
"""
_COLUMNS = {
    "name": "name",
    "cpu": "cores",
    "memory": {"column": "ram", "unit": "Gi"},
    "arrival": "start",
    "end": "stop",
    "namespace": "team",
    "labels.team": "team",
}


def trace(folder: Path, text: str = _PODS, name: str = "pods.csv") -> dict[str, Any]:
    """Return a source of pods with a trace of this text."""
    file = folder / name
    file.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return {"trace": str(file), "columns": _COLUMNS}


@pytest.mark.parametrize("name", ["pods.csv", "pods.csv.gz"])
def test_columns_say_what_pods_ask_for_and_when_they_come(tmp_path: Path, name: str) -> None:
    run = once({"nodes": [nodes()], "pods": [trace(tmp_path, name=name)]})
    assert column(run, "namespace", "name", "arrived", "ended", "outcome") == [
        ("red", "a", 0.0, 61.002, "completed"),
        ("blue", "b", 10.0, None, "running"),
    ]
    assert run.totals["utilisationEnd/cpu"] == 0.5


def test_parquet_is_read_as_csv_is(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"name": ["a", "b"], "cores": [1, 2], "ram": [2, 4], "start": [100.0, 110.0]}
    table = pyarrow.table({**columns, "stop": [160, None], "team": ["red", "blue"]})
    parquet.write_table(table, tmp_path / "pods.parquet")
    source = {"trace": str(tmp_path / "pods.parquet"), "columns": _COLUMNS}
    read = once({"nodes": [nodes()], "pods": [source]})
    assert read.digest == once({"nodes": [nodes()], "pods": [trace(tmp_path)]}).digest
    assert read.pods["arrived"] == [0.0, 10.0]


_BAD = _PODS + "c,one,1,1,2,red\nD,1,1,1,2,red\ne,1\nf,1,1,5,2,red\n,1,1,1,2,red\ng,-1,1,1,2,red\n"
_FAULTS = [
    "4: column cores: 'one' is no quantity",
    "5: 'D' is no name of an object",
    "6: 2 cells, and the heading has 6",
    "7: it ends 3 s before it begins",
    "8: it has no name",
    "9: column cores: '-1' is negative",
]


def test_bad_rows_are_fatal_each_with_its_line(tmp_path: Path) -> None:
    source = trace(tmp_path, _BAD)
    with pytest.raises(ConfigError) as error:
        simulate({"nodes": [nodes()], "pods": [source]})
    assert list(error.value.faults) == [f"{source['trace']}:{fault}" for fault in _FAULTS]


def test_bad_rows_are_left_out_and_told_if_asked(tmp_path: Path) -> None:
    source = trace(tmp_path, _BAD)
    found = simulate({"nodes": [nodes()], "pods": [source], "badRows": "leaveOut"})
    assert list(found.left_out) == [f"{source['trace']}:{fault}" for fault in _FAULTS]
    assert found.values("default", "pods") == [2]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        pytest.param(
            {"columns": {"name": "name", "colour": "team"}},
            "pods[0].columns: unknown field 'colour'; there are name, namespace, cpu, memory, "
            "priority, priorityClassName, arrival, start, end, runTime, resources.NAME, "
            "labels.KEY, annotations.KEY, nodeSelector.KEY",
            id="an unknown field",
        ),
        pytest.param({"columns": {}}, "pods[0].columns: no column holds the name", id="no name"),
        pytest.param(
            {"columns": {"name": "name", "cpu": "cpus"}},
            "{file}: there is no column cpus",
            id="a column that is not there",
        ),
        pytest.param(
            {"preset": "borg"}, "there is no preset 'borg'; there is openb", id="no preset"
        ),
        pytest.param(
            {"columns": {"name": "name", "end": {"column": "stop", "unit": "weeks"}}},
            "pods[0].columns.end: unit 'weeks': write ms, s, m, h",
            id="a unit of time that is not known",
        ),
    ],
)
def test_a_map_of_columns_that_cannot_be_used(
    tmp_path: Path, source: dict[str, Any], message: str
) -> None:
    changed = {**trace(tmp_path), **source}
    with pytest.raises(UsageError) as error:
        simulate({"nodes": [nodes()], "pods": [changed]})
    assert str(error.value) == message.format(file=changed["trace"])


def test_openb_preset_reads_gpus_and_leaves_times_optional(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("sn,cpu_milli,memory_mib,gpu,model\nn1,8000,1024,2,T4\n")
    (tmp_path / "pods.csv").write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
        "share,1000,100,1,460\nwhole,1000,100,1,1000\nnone,1000,100,0,0\ntoo-much,1000,100,1,600\n"
    )
    run = once(
        {
            "nodes": [{"trace": str(tmp_path / "nodes.csv"), "preset": "openb"}],
            "pods": [{"trace": str(tmp_path / "pods.csv"), "preset": "openb"}],
        }
    )
    assert column(run, "name", "node") == [
        ("share", "n1"),
        ("whole", "n1"),
        ("none", "n1"),
        ("too-much", ""),
    ]
    assert run.totals["utilisationEnd/alibabacloud.com/gpu-milli"] == 0.73


def test_a_row_of_openb_without_its_share_of_a_gpu_is_bad(tmp_path: Path) -> None:
    (tmp_path / "pods.csv").write_text(
        "name,cpu_milli,memory_mib,num_gpu,gpu_milli\nempty,1000,100,1,\nzero,1000,100,2,0\n"
    )
    with pytest.raises(UsageError) as error:
        simulate(
            {
                "nodes": [nodes()],
                "pods": [{"trace": str(tmp_path / "pods.csv"), "preset": "openb"}],
            }
        )
    assert str(error.value).splitlines()[1:] == [
        f"  - {tmp_path / 'pods.csv'}:{line}: num_gpu is {count}, so gpu_milli has to be above 0"
        for line, count in ((2, 1), (3, 2))
    ]


def test_events_say_when_pods_came_and_ended(tmp_path: Path) -> None:
    def event(reason: str, name: str, at: str) -> dict[str, Any]:
        about = {"kind": "Pod", "namespace": "web", "name": name}
        return {"kind": "Event", "reason": reason, "involvedObject": about, "firstTimestamp": at}

    items = [
        event("FailedScheduling", "a", "2026-01-01T00:00:10Z"),
        event("Scheduled", "a", "2026-01-01T00:00:40Z"),
        event("Killing", "a", "2026-01-01T00:01:40Z"),
        event("Scheduled", "b", "2026-01-01T00:00:00Z"),
        {"kind": "Event", "involvedObject": {"kind": "Node", "name": "n"}, "reason": "Starting"},
    ]
    file = tmp_path / "events.json"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": items}))
    run = once({"nodes": [nodes()], "pods": [{"events": str(file), "template": {}}]})
    assert column(run, "namespace", "name", "arrived", "ended") == [
        ("web", "b", 0.0, None),
        ("web", "a", 10.0, 71.002),
    ]


def test_a_dump_has_pods_on_its_nodes_and_pods_that_wait(tmp_path: Path) -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "n1"},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    }
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": "3"}}}
    there = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "there", "namespace": "x", "uid": "u1"},
        "spec": {"nodeName": "n1", "containers": [container]},
        "status": {"phase": "Running"},
    }
    waits = {**there, "metadata": {"name": "waits", "namespace": "x", "uid": "u2"}}
    waits["spec"] = {"containers": [container]}
    file = tmp_path / "dump.json"
    file.write_text(json.dumps({"kind": "List", "apiVersion": "v1", "items": [node, there, waits]}))
    run = once({"nodes": [nodes()], "pods": [{"file": str(file)}]})
    assert column(run, "name", "node", "outcome") == [
        ("there", "n1", "running"),
        ("waits", "node-01", "running"),
    ]


def test_an_owner_of_pods_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "web.json"
    web = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    file.write_text(json.dumps(web))
    with pytest.raises(UsageError, match="Deployment web: no controller makes its pods"):
        simulate({"nodes": [nodes()], "pods": [{"file": str(file)}]})


HEADING = "name,cores,ram,start,stop,team\n"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        pytest.param(HEADING, "there are no rows below its heading", id="a heading without rows"),
        pytest.param(
            _PODS.replace(",", ";"),
            "its heading is one column, 'name;cores;ram;start;stop;team': write commas between "
            "the cells, not semicolons",
            id="another separator",
        ),
        pytest.param(
            _PODS.replace(",", "\t"), "write commas between the cells, not tabs", id="tabs"
        ),
        pytest.param(
            f"{HEADING}a,1\n", "pods.csv:2: 2 cells, and the heading has 6", id="a short first row"
        ),
        pytest.param(
            f"\n\r\n{HEADING}a;1;2;0;9;red\n",
            "pods.csv:4: 1 cell, and the heading has 6",
            id="empty lines above the heading, and a row with another separator",
        ),
        pytest.param(
            f"{HEADING}train,1,2,100,160,red\ntrain,1,2,110,160,red\n",
            "pods[0]: pod red/train comes twice; give each its own name",
            id="a name that comes twice",
        ),
        pytest.param(
            "name,cores,cores,ram\na,1,2,3\n",
            "pods.csv: its heading has column 'cores' twice",
            id="a column that comes twice",
        ),
    ],
)
def test_a_table_that_cannot_be_used_is_told(tmp_path: Path, text: str, fault: str) -> None:
    with pytest.raises(UsageError) as raised:
        once({"nodes": [nodes()], "pods": [trace(tmp_path, text)]})
    assert fault in str(raised.value)


def test_a_name_that_comes_twice_is_left_out_if_asked(tmp_path: Path) -> None:
    text = f"{HEADING}train,1,2,100,160,red\ntrain,1,2,110,160,red\ntrain,1,2,110,160,blue\n"
    run = once({"nodes": [nodes()], "pods": [trace(tmp_path, text)], "badRows": "leaveOut"})
    assert column(run, "namespace", "name", "outcome") == [
        ("red", "train", "completed"),
        ("blue", "train", "completed"),
    ]


def test_a_node_that_comes_twice_is_refused(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("name,cpu\nn1,8\nn1,4\n")
    columns = {"name": "name", "cpu": "cpu"}
    rows = {"trace": str(tmp_path / "nodes.csv"), "columns": columns}
    with pytest.raises(UsageError, match="node n1 comes twice"):
        once({"nodes": [rows], "pods": [trace(tmp_path, _PODS)]})


def test_one_dump_gives_both_the_nodes_and_the_pods(tmp_path: Path) -> None:
    waiting, running = pod("waiting"), pod("running", node="n1")
    file = tmp_path / "all.json"
    file.write_text(json.dumps([node_manifest("n1"), waiting, running]))
    run = once({"nodes": [{"file": str(file)}], "pods": [{"file": str(file)}]})
    assert column(run, "name", "outcome") == [("running", "running"), ("waiting", "running")]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig"])
def test_a_trace_of_another_encoding_with_spaces_in_its_heading(
    tmp_path: Path, encoding: str
) -> None:
    path = tmp_path / "pods.csv"
    path.write_bytes("name, cores\na,1\n".encode(encoding))
    source = {"trace": str(path), "columns": {"name": "name", "cpu": "cores"}}
    run = once({"nodes": [nodes()], "pods": [source]})
    assert column(run, "name") == [("a",)]


def test_an_object_whose_metadata_is_a_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "pods.yaml"
    file.write_text("{apiVersion: v1, kind: Pod, metadata: x}")
    with pytest.raises(UsageError, match="Pod: metadata is no object"):
        manifests_of(str(file))


def test_a_file_without_objects_is_refused(tmp_path: Path) -> None:
    (tmp_path / "none.yaml").write_text("")
    with pytest.raises(UsageError, match="there are no objects"):
        once({"nodes": [nodes()], "pods": [{"file": str(tmp_path / "none.yaml")}]})


def test_copies_of_two_templates_are_numbered_on() -> None:
    template = {"spec": {"containers": [{"name": "main", "image": "app"}]}}
    pods = [{"count": 2, "template": template}, {"count": 1, "template": template}]
    run = once({"nodes": [nodes()], "pods": pods})
    assert column(run, "name") == [("pod-1",), ("pod-2",), ("pod-3",)]
