"""``moorage explain pod`` over a file: text, wide, JSON, and what is told when it cannot answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moorage_sandbox.testing.builders import node_manifest
from sandbox.tests.sandbox.process import Up
from scheduler.tests.explain.clusters import bound, waiting
from scheduler.tests.explain.workloads.owned import owner, pending_pods, reference
from tests.cli.conftest import Type, settle


@pytest.fixture
def dump(tmp_path: Path) -> str:
    items = [
        node_manifest("n0"),
        node_manifest("n1", cpu="2"),
        bound("w", "n0", cpu="3"),
        waiting("p", cpu="2500m"),
    ]
    file = tmp_path / "dump.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(file)


TEXT = """\
pod default/p: would fit on 1 node of 2 but for cpu (it requests 2500m, the most that is free \
on one of them is 1)

Suggestions, each tried by itself:
  1. request at most 2 cpu instead of 2500m: n1 takes it
  2. evict pod default/w (priority 0) from n0
     kubectl -n default delete pod w
  3. a new PriorityClass priority-1 of value 1 as priorityClassName: it would \
evict default/w from n0
  4. one more node like n0 (4 cpu, 8Gi memory; there is 1 of this shape)

NODE   SCORE   PLUGINS
n0     -       NodeResourcesFit: Insufficient cpu
n1     -       NodeResourcesFit: Insufficient cpu

Computed afresh from the API's objects by the scheduler's engine; queue and backoff are those of \
a scheduler that has just started. By the default configuration.
"""


def test_the_text(bare: Type, dump: str) -> None:
    done = bare("explain", "pod", "p", "--from", dump)
    assert (done.exit_code, done.stdout) == (0, TEXT)


def test_standard_input_is_read(bare: Type, dump: str) -> None:
    done = bare("explain", "pod", "pod/p", "--from", "-", stdin=Path(dump).read_text())
    assert (done.exit_code, done.stdout) == (0, TEXT)


@pytest.mark.parametrize("words", ["p", "pod/p", "po/p", "po p", "pods p", "Pod p", "pod pod/p"])
def test_a_pod_is_named_as_for_kubectl(bare: Type, dump: str, words: str) -> None:
    done = bare("explain", *words.split(), "--from", dump)
    assert (done.exit_code, done.stdout) == (0, TEXT)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("deployment/api", 'deployments.apps "api" not found in default'),
        ("deploy api", 'deployments.apps "api" not found in default'),
        ("pdo/p", '"pdo" is no type that is known, and no pod in default has an owner pdo/p'),
        ("svc/web", "explain answers about pods, deployment"),
        ("-l app=web p", "name one object"),
        ("node", 'pods "node" not found'),
    ],
)
def test_other_types_are_refused_with_what_to_write(
    bare: Type, dump: str, words: str, says: str
) -> None:
    done = bare("explain", *words.split(), "--from", dump)
    assert done.exit_code != 0
    assert says in done.stderr


def test_wide_has_a_column_for_each_plugin(bare: Type, dump: str) -> None:
    done = bare("explain", "pod", "w", "--from", dump, "-o", "wide", "--node", "n1")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("pod default/w: bound to n0 because of its score ")
    assert lines[2].split()[:3] == ["NODE", "SCORE", "NodeResourcesFit".upper()]
    assert [line.split()[0] for line in lines[3:5]] == ["n0", "n1"]


def test_json_has_every_part(bare: Type, dump: str) -> None:
    done = bare("explain", "pod", "p", "--from", dump, "-o", "json")
    found = json.loads(done.stdout)
    assert found["where"] == "rejected"
    assert found["causes"] == [
        {
            "plugins": ["NodeResourcesFit"],
            "reasons": ["Insufficient cpu"],
            "fact": "cpu (it requests 2500m, the most that is free on one of them is 1)",
            "nodes": 1,
            "code": "InsufficientCPU",
        }
    ]
    assert [way["kind"] for way in found["waysOut"]] == ["request", "evict", "priority", "node"]
    assert found["nodeCount"] == 2


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        pytest.param(["nobody"], 1, 'pods "nobody" not found in default', id="no such pod"),
        pytest.param(["p", "--node", "n7"], 2, 'node "n7" not found', id="no such node"),
        pytest.param(
            ["p", "--attempt", "0"],
            2,
            "--attempt 0: attempts are counted from 1, or from the last one, -1",
            id="attempt 0",
        ),
    ],
)
def test_a_missing_pod_is_named(
    bare: Type, dump: str, words: list[str], code: int, told: str
) -> None:
    """The exit code is that of `get`: 1 for an object that is not there, 2 for bad input."""
    done = bare("explain", "pod", *words, "--from", dump)
    assert done.exit_code == code
    assert told in done.stderr


@pytest.mark.slow
def test_the_scheduler_of_a_sandbox_is_found_and_asked(typed: Type, sandbox: Up) -> None:
    manifest = "{apiVersion: v1, kind: Pod, metadata: {name: big}, spec: {containers: [{name: c, \
image: x, resources: {requests: {cpu: 900}}}]}}"
    assert typed("apply", "-f", "-", stdin=manifest).exit_code == 0
    settle(sandbox)
    live = typed("explain", "pod", "big")
    assert live.stdout.splitlines()[0].startswith(
        "pod default/big: never fits here, not even on an empty node, because of cpu (it requests"
    )
    assert live.stdout.splitlines()[-1] == "From the scheduler's own state, at this moment."
    afresh = typed("explain", "pod", "big", "--thorough")
    assert afresh.stdout.splitlines()[:-1] == live.stdout.splitlines()[:-1]
    assert afresh.stdout.splitlines()[-1].startswith("Computed afresh from the API's objects")
    assert typed("delete", "pod", "big").exit_code == 0


WORKLOAD = """\
deployment default/api: 0 of 2 pods are ready; 2 are pending: each would fit on 1 node of 2 but \
for cpu (it requests 2500m, the most that is free on one of them is 1)

PODS   STATE     WHY
2      pending   would fit on 1 node of 2 but for cpu (it requests 2500m, the most that is free \
on one of them is 1)
"""


@pytest.mark.parametrize("words", ["deployment/api", "deploy api", "deployments.apps api"])
def test_a_workload_is_named_as_for_kubectl(bare: Type, tmp_path: Path, words: str) -> None:
    file = tmp_path / "dump.json"
    below = reference("Deployment", "api")
    items = [
        node_manifest("n0"),
        node_manifest("n1", cpu="2"),
        bound("w", "n0", cpu="3"),
        owner("Deployment", "api", replicas=2),
        owner("ReplicaSet", "api-1", below=below, replicas=2),
        *pending_pods(reference("ReplicaSet", "api-1"), 2, cpu="2500m"),
    ]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    done = bare("explain", *words.split(), "--from", str(file))
    assert done.exit_code == 0
    assert done.stdout.startswith(WORKLOAD)
    assert "request at most 2 cpu instead of 2500m: helps 1 of 2\n" in done.stdout
    plain = json.loads(bare("explain", *words.split(), "--from", str(file), "-o", "json").stdout)
    assert (plain["type"], plain["wanted"], plain["counts"][0]["stage"]) == (
        "deployment",
        2,
        "pending",
    )


def test_pods_are_selected_by_labels(bare: Type, dump: str) -> None:
    for words in (["-l", "app=none"], ["po", "-l", "app=none"], ["--selector=app=none", "-A"]):
        done = bare("explain", *words, "--from", dump)
        assert done.exit_code == 1
        assert "there are no pods with labels app=none in " in done.stderr
    done = bare("explain", "-A", "--from", dump)
    assert done.stdout.startswith("pods in all namespaces: 0 of 2 pods are ready; ")
