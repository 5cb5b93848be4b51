"""Whole runs: the same seed is the same run, and every invariant holds."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import weakref
from itertools import product
from pathlib import Path
from typing import Any, Literal, TypeGuard

import msgspec
import pytest

from lab.tests.fault_sim.commit_seed import commit_seed
from lab.tests.fault_sim.one_situation import one_situation
from moorage.api.pod import Pod
from moorage.service.scheduler import Parts, Scheduler
from moorage.snapshot.shape import Part, PartKind
from moorage.state.queue import SchedulingQueue
from moorage.state.queued_pod import QueuedPod
from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.acts import Script
from moorage_lab.fault_sim.fault_run import Outcome, play
from moorage_lab.fault_sim.scenarios import SCENARIOS, scenario
from moorage_lab.fault_sim.situations.storage import limit_is_raised
from moorage_lab.fault_sim.users.groups import gang
from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from tests import packages

ROOT = Path(__file__).parents[3]
FRESH_RUNS = 2  # of a commit's own seed, in scenarios of its own; one run of 41 broke an invariant


def breach_text(outcome: Outcome) -> str:
    """Return the breaches of a run, each in a line; "" for none."""
    return "\n".join(f"{each.invariant}: {each.text}" for each in outcome.breaches)


def test_a_short_run_holds_every_invariant_and_can_be_repeated() -> None:
    script = msgspec.structs.replace(scenario("mixed"), steps=12).script(3)
    first = play(script)
    assert breach_text(first) == ""
    assert first.bound > 0
    again = play(msgspec.json.decode(msgspec.json.encode(script), type=Script))
    assert again.lines == first.lines
    assert again.steps == first.steps


def test_the_rest_is_longer_where_pods_were_just_made() -> None:
    """A Job may make a pod at the end of its backoff, which is tried a moment later."""
    created = acts.Create(at=2.0, object=pod_manifest("p", cpu="1"))
    script = Script(seed=1, nodes=[node_manifest("n", cpu="2")], acts=[created])
    outcomes = [
        play(msgspec.structs.replace(script, rest_seconds=seconds)) for seconds in (0.001, 10.0)
    ]
    assert [round(each.seconds) for each in outcomes] == [22, 12]
    assert list(map(breach_text, outcomes)) == ["", ""]


@pytest.mark.slow
def test_nothing_of_a_run_stays_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hunt plays many scripts in one process, and shortening a script plays it 200 times.

    Somebody else in the process, as an earlier test, may hold pods that share parts with the run's.
    """
    others: list[Part[Any]] = []
    of = PartKind.part_of

    def recording_part(self: PartKind[Any], pod: Pod) -> Part[Any]:
        others.append(of(self, pod))
        return others[-1]

    monkeypatch.setattr(PartKind, "part_of", recording_part)
    starts: list[weakref.ref[Scheduler]] = []
    begin = Scheduler.__init__

    def recording_init(self: Scheduler, parts: Parts) -> None:
        begin(self, parts)
        starts.append(weakref.ref(self))

    monkeypatch.setattr(Scheduler, "__init__", recording_init)
    play(msgspec.structs.replace(scenario("mixed"), steps=12).script(3))
    gc.collect()
    assert others
    assert len(starts) >= 3
    assert [each for each in starts if each() is not None] == []


def test_a_scheduler_need_not_have_heard_of_a_resize() -> None:
    small = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}]}
    resized = acts.Patch(
        at=8.5, kind="Pod", name="large", changes={"spec": small}, subresource="resize"
    )
    script = Script(
        seed=1,
        replicas=1,
        nodes=[node_manifest("n1", cpu="2")],
        acts=[
            acts.Create(at=1.0, object=pod_manifest("large", cpu="1")),
            acts.Disturb(at=5.0, process="scheduler-0", fault="watch-slow", rate=1.0, seconds=9.0),
            # The scheduler hears of this pod, and binds it, before it hears of the resize.
            acts.Create(at=6.0, object=pod_manifest("other", cpu="100m")),
            resized,
        ],
        rest_seconds=20.0,
    )
    outcome = play(script)
    assert breach_text(outcome) == ""
    assert outcome.bound == 2
    assert outcome.fault_counts["watch-slow"] > 0


def test_a_look_between_waits_until_a_scheduler_has_heard_of_everything() -> None:
    script = Script(
        seed=1,
        replicas=1,
        nodes=[node_manifest("n1", cpu="2")],
        acts=[
            acts.Disturb(at=5.0, process="scheduler-0", fault="watch-slow", rate=1.0, seconds=3.0),
            *[acts.Create(at=6.0, object=pod_manifest(f"p{i}", cpu="100m")) for i in range(5)],
            acts.Look(at=6.1),
            acts.Look(at=8.1),
        ],
        rest_seconds=20.0,
    )
    assert breach_text(play(script)) == ""


@pytest.mark.parametrize("seed", range(1, 5))
def test_a_scheduler_need_not_have_heard_of_a_limit_of_volumes(seed: int) -> None:
    script = one_situation(limit_is_raised, seed=seed, setup="default", rest_seconds=40.0)
    moments = {act.object["metadata"]["name"]: act.at for act in script.acts if _creates(act)}
    at = moments["k0-p"] - 0.001
    slow = acts.Disturb(at=at, process="scheduler-0", fault="watch-slow", rate=1.0, seconds=1.0)
    late = [
        msgspec.structs.replace(act, at=at)
        if _creates(act) and act.object["kind"] == "CSINode"
        else act
        for act in script.acts
    ]
    assert breach_text(play(msgspec.structs.replace(script, acts=[slow, *late]))) == ""


def _creates(act: acts.AnyAct) -> TypeGuard[acts.Create]:
    return isinstance(act, acts.Create)


def test_a_scheduler_that_is_told_twice_to_end_leaves_its_lease() -> None:
    ends: list[acts.AnyAct] = [
        acts.Kill(at=at, process="scheduler-0", signal="TERM", seconds=5.0)
        for at in (12.0, 12.0001)
    ]
    nodes = [node_manifest("n1", cpu="2")]
    assert (
        breach_text(play(Script(seed=1, replicas=1, nodes=nodes, acts=ends, rest_seconds=20.0)))
        == ""
    )


@pytest.mark.parametrize("ungated", [12.2, 45.0])
@pytest.mark.parametrize("signal", ["TERM", "KILL"])
def test_a_gang_is_bound_by_the_next_leader_once_its_gate_is_gone(
    ungated: float, signal: Literal["TERM", "KILL"]
) -> None:
    def member(name: str, *gates: str) -> acts.Create:
        pod = pod_manifest(name, cpu="500m", gates=gates)
        pod["spec"]["schedulingGroup"] = {"podGroupName": "gang"}
        return acts.Create(at=6.0, object=pod)

    first = acts.Create(at=5.0, object=pod_manifest("first", cpu="500m"))
    group = acts.Create(at=5.5, object=gang("gang", 2))
    gone = acts.Patch(at=ungated, kind="Pod", name="m1", changes={"spec": {"schedulingGates": []}})
    killed = acts.Kill(at=12.0, process="scheduler-1", signal=signal, seconds=80.0)
    script = Script(
        seed=1,
        replicas=2,
        nodes=[node_manifest("n1")],
        acts=sorted([first, group, member("m0"), member("m1", "g"), gone, killed], key=_moment),
        rest_seconds=60.0,
    )
    outcome = play(script)
    assert breach_text(outcome) == ""
    lines = [line.split() for line in outcome.lines if "/binding -> 201" in line]
    assert {(path.split("/")[-2], who) for _, who, _, path, *_ in lines} == {
        ("first", "scheduler-1.1"),
        ("m0", "scheduler-0.1"),
        ("m1", "scheduler-0.1"),
    }


def _moment(act: acts.Act) -> float:
    return act.at


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "seed"),
    [
        *product(SCENARIOS, range(1, 4)),
        ("mixed", 4),  # a preemptor whose evictions failed was tried a thousand times a second
        ("quotas", 4),  # columns were compared with a resize of which the scheduler had not heard
    ],
)
def test_every_invariant_holds(name: str, seed: int) -> None:
    assert breach_text(play(scenario(name).script(seed))) == ""


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("place", range(FRESH_RUNS))
def test_every_invariant_holds_with_the_seed_of_the_commit(place: int) -> None:
    seed = commit_seed()
    name = sorted(SCENARIOS)[(seed + place) % len(SCENARIOS)]
    again = f"moorage fault-sim run --seed {seed} --scenario {name}"
    assert breach_text(play(scenario(name).script(seed))) == "", f"{again} plays it again"


def digest(python: str, hash_seed: str) -> str:
    """Return the digest of a run in a process of its own, with a Python and a seed of hashing."""
    done = subprocess.run(
        [python, "-m", "moorage", "fault-sim", "run", "--seed", "6", "-o", "json"],
        env={
            **os.environ,
            "PYTHONHASHSEED": hash_seed,
            "PYTHONPATH": os.pathsep.join(map(str, packages.SOURCES)),
        },
        capture_output=True,
        text=True,
        check=True,
    )
    digest: str = json.loads(done.stdout)["digest"]
    return digest


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_run_does_not_depend_on_the_order_of_hashing() -> None:
    assert digest(sys.executable, "1") == digest(sys.executable, "2")


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_run_is_the_same_on_every_python() -> None:
    """Environments of other Pythons are built by ``make venv PYTHON=... VENV=.cache/python...``."""
    others = sorted((ROOT / ".cache").glob("python3.*/bin/python"))
    if not others:
        pytest.skip("no environment of another Python: .cache/python3.*")
    assert {digest(str(each), "1") for each in others} == {digest(sys.executable, "1")}


def test_a_run_in_which_pods_are_tried_without_a_pause_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The virtual time hardly moves then, so its end would never come."""
    give_back = SchedulingQueue.add_unschedulable_if_not_present

    def at_once(queue: SchedulingQueue, queued: QueuedPod, *args: Any, **options: Any) -> None:
        give_back(queue, queued, *args, **options)
        queue.activate([queued.pod])

    monkeypatch.setattr(SchedulingQueue, "add_unschedulable_if_not_present", at_once)
    created = acts.Create(at=2.0, object=pod_manifest("p", cpu="9"))
    outcome = play(Script(seed=1, nodes=[node_manifest("n", cpu="2")], acts=[created]))
    assert {each.invariant for each in outcome.breaches} == {"tries"}
    assert outcome.seconds < 10
