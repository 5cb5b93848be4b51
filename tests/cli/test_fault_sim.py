"""``moorage fault-sim``: output, files and exit codes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from moorage_lab.cli.fault_sim import hunting, walking
from moorage_lab.fault_sim.acts import AnyAct, Create, Script
from moorage_lab.fault_sim.fault_run import play
from moorage_lab.fault_sim.hunt import HuntRun
from moorage_lab.fault_sim.invariants.invariant import Breach
from moorage_lab.fault_sim.scenarios import SCENARIOS
from moorage_lab.fault_sim.users.faults import FAULT_KINDS
from moorage_lab.fault_sim.walk import SCENES, WALK_ACTS, Walk, scene
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from tests.cli.conftest import Type


def test_a_run_is_kept_and_replayed(bare: Type) -> None:
    kept = bare("fault-sim", "run", "--seed", "4", "--steps", "3", "--save", "s.json", "-o", "json")
    assert kept.exit_code == 0
    again = bare("fault-sim", "replay", "s.json", "-o", "json")
    first, second = json.loads(kept.stdout), json.loads(again.stdout)
    assert first["digest"] == second["digest"]
    assert len(second.pop("trace")) > 10
    assert first == second


def test_a_run_has_as_many_nodes_as_are_asked_for(bare: Type) -> None:
    words = ("--scenario", "calm", "--steps", "3", "--nodes", "12", "--save", "s.json")
    assert bare("fault-sim", "run", *words).exit_code == 0
    names = {each["metadata"]["name"] for each in json.loads(Path("s.json").read_text())["nodes"]}
    assert names >= {f"n{number}" for number in range(12)}  # others are for pods with a wait
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
    report = json.loads(bare("fault-sim", "replay", "s.json", "--pod", pod, "-o", "json").stdout)
    told = [line.split()[1:] for line in report["trace"]]
    path = "/api/v1/namespaces/default/pods"
    assert told[:2] == [
        ["user", "POST", path, "p3", "->", "201"],
        ["scheduler-0.1", "POST", f"{path}/p3/binding", "->", "201"],
    ]
    assert {path for _, _, path, *_ in told[1:]} == {f"{path}/p3/binding", f"{path}/p3/status"}


@pytest.mark.parametrize("command", ["run", "hunt"])
def test_the_help_names_every_scenario_and_fault(bare: Type, command: str) -> None:
    text = " ".join(bare("fault-sim", command, "--help").stdout.split())
    *names, last = SCENARIOS
    assert f"Users and faults to draw: {', '.join(names)} or {last}" in text
    assert f"with commas: {', '.join(FAULT_KINDS)}; none" in text


def test_the_help_names_every_scene_and_act_of_a_walk(bare: Type) -> None:
    text = " ".join(bare("fault-sim", "walk", "--help").stdout.split())
    for names in (SCENES, WALK_ACTS):
        *first, last = names
        assert f"{', '.join(first)} or {last}" in text


def test_a_walk_tells_its_steps_and_keeps_what_breaks(
    bare: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = scene("binding", 1)
    outcome = msgspec.structs.replace(play(whole), breaches=(Breach("room", 1.0, "too full"),))

    def strike(walk: Walk, **options: object) -> Iterator[HuntRun]:
        yield HuntRun(script=walk.script_at(walk.stops[6]), outcome=outcome, new=0)

    monkeypatch.setattr(walking, "hunt", strike)
    words = ("--scene", "binding", "--act", "kill", "--keep", "found")
    result = bare("fault-sim", "walk", *words)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == "binding, kill, after 7 steps: room: too full"
    assert lines[1].endswith("steps walked; 1 breaches")
    kept = json.loads(Path("found/binding-kill-7.json").read_text())
    assert (kept["acts"][0]["act"], kept["acts"][0]["steps"]) == ("kill", 7)


def test_a_script_is_kept_while_the_hunt_goes_on_and_then_made_shorter(
    bare: Type, monkeypatch: pytest.MonkeyPatch
) -> None:
    acts: list[AnyAct] = [
        Create(at=1.0 + number, object=pod_manifest(f"p{number}")) for number in range(8)
    ]
    whole = Script(seed=3, replicas=1, nodes=[node_manifest("n1")], acts=acts, rest_seconds=1.0)
    breach = Breach("room", 1.0, "too full")
    outcome = msgspec.structs.replace(play(whole), breaches=(breach,))
    kept: list[int] = []

    def played(script: Script) -> object:
        kept.append(len(json.loads(Path("found/room-3.json").read_text())["acts"]))
        needed = acts[5] in script.acts
        return msgspec.structs.replace(outcome, breaches=(breach,) if needed else ())

    found = HuntRun(script=whole, outcome=outcome, new=1)
    written: list[bool] = []

    def one(*_: object, **__: object) -> Iterator[HuntRun]:
        yield found
        written.append(Path("found/room-3.json").exists())

    monkeypatch.setattr(hunting, "hunt", one)
    monkeypatch.setattr(hunting, "play", played)
    result = bare("fault-sim", "hunt", "--runs", "1", "--keep", "found")
    assert result.exit_code == 1
    assert written == [True]
    assert set(kept) == {8}
    short = json.loads(Path("found/room-3.json").read_text())["acts"]
    assert [act["object"]["metadata"]["name"] for act in short] == ["p5"]
    assert result.stderr.splitlines() == [
        "note: seed 3 breaks room: too full",
        "note: found/room-3.json: 8 acts break room; made shorter now",
        "note: found/room-3.json: 1 acts break room",
    ]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["run", "--scenario", "storm"],
            "error: no scenario 'storm'; there are calm, waits, few, combined, late, wire, "
            "leaders, quotas, operations, extenders, disk, mixed",
        ),
        (
            ["run", "--faults", "wire,rain"],
            "error: no fault 'rain'; there are wire, stop, kill, jump, lease, outage, blind, "
            "agents, stale, plugins, disk, and none",
        ),
        (
            ["walk", "--scene", "opera"],
            "error: no scene 'opera'; there are binding, volumes, devices, preemption, gang, team, "
            "quota, delayed-step",
        ),
        (
            ["walk", "--act", "fly"],
            "error: no act 'fly'; there are kill, end, stop, depose, delete, and all",
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
    result = bare("fault-sim", *words)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[0] == message
