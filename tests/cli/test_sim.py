"""``moorage sim``: output, files and exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from moorage.sim.acts import Create, Script
from moorage.testing.builders import node_manifest, pod_manifest
from tests.cli.conftest import Type


def test_a_run_is_kept_and_replayed(bare: Type) -> None:
    kept = bare("sim", "run", "--seed", "4", "--steps", "3", "--save", "s.json", "-o", "json")
    assert kept.exit_code == 0
    again = bare("sim", "replay", "s.json", "-o", "json")
    first, second = json.loads(kept.stdout), json.loads(again.stdout)
    assert first["digest"] == second["digest"]
    assert len(second.pop("trace")) > 10
    assert first == second


def test_a_run_has_as_many_nodes_as_are_asked_for(bare: Type) -> None:
    words = ("--scenario", "calm", "--steps", "3", "--nodes", "12", "--save", "s.json")
    assert bare("sim", "run", *words).exit_code == 0
    names = {each["metadata"]["name"] for each in json.loads(Path("s.json").read_text())["nodes"]}
    assert names >= {f"n{number}" for number in range(12)}  # others are for pods with a want
    assert "n12" not in names


@pytest.mark.parametrize("pod", ["default/p3", "p3"])
def test_the_trace_of_one_pod_begins_with_its_creation(bare: Type, pod: str) -> None:
    other = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}}
    script = Script(
        seed=1,
        replicas=1,
        nodes=[node_manifest("n1")],
        acts=[
            Create(at=1.0, object=other),
            Create(at=2.0, object=pod_manifest("p3", namespace="other")),
            Create(at=3.0, object=pod_manifest("p31")),
            Create(at=4.0, object=pod_manifest("p3")),
        ],
    )
    Path("s.json").write_bytes(msgspec.json.encode(script))
    report = json.loads(bare("sim", "replay", "s.json", "--pod", pod, "-o", "json").stdout)
    told = [line.split()[1:] for line in report["trace"]]
    path = "/api/v1/namespaces/default/pods"
    assert told[:2] == [
        ["user", "POST", path, "p3", "->", "201"],
        ["scheduler-0.1", "POST", f"{path}/p3/binding", "->", "201"],
    ]
    assert {path for _, _, path, *_ in told[1:]} == {f"{path}/p3/binding", f"{path}/p3/status"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["run", "--scenario", "storm"],
            "error: no scenario 'storm'; there are calm, wants, few, late, wire, leaders, "
            "quotas, operations, extenders, disk, mixed",
        ),
        (
            ["run", "--faults", "wire,rain"],
            "error: no fault 'rain'; there are wire, stop, kill, jump, outage, blind, agents, "
            "stale, disk, and none",
        ),
        (["replay", "gone.json"], "error: gone.json cannot be read: No such file or directory"),
        (
            ["replay", "bad.json"],
            "error: bad.json is no script of a simulation: Object contains unknown field `sede`",
        ),
    ],
)
def test_bad_input_is_told(bare: Type, words: list[str], message: str) -> None:
    Path("bad.json").write_text('{"sede": 1}')
    result = bare("sim", *words)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[0] == message
