"""``moorage what-if`` and ``moorage capacity``: output and exit codes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moorage.base.running_sandboxes import find
from moorage.cli.what_if.source import drop_ended_jobs
from moorage.virtual.objects import read_objects
from moorage_sandbox.testing.builders import Manifest, node_manifest
from sandbox.tests.sandbox.process import Up
from scheduler.tests.what_if.cluster import bare as bare_pod
from scheduler.tests.what_if.cluster import pod_of, replica_set
from tests.cli.conftest import Type

_ITEMS = [
    *(node_manifest(name) for name in ("n1", "n2")),
    replica_set("web", 1),
    pod_of("web", 0, "n1"),
]


def _dump(*items: Manifest) -> None:
    found = {"apiVersion": "v1", "kind": "List", "items": [*_ITEMS, *items]}
    Path("dump.json").write_text(json.dumps(found))


def _type(bare: Type, *words: str) -> tuple[int, str, str]:
    result = bare(*words, "--from", "dump.json")
    return result.exit_code, result.stdout, result.stderr


def test_a_course_is_told_to_people(bare: Type) -> None:
    _dump()
    code, out, err = _type(bare, "what-if", "--drain", "n1")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[:3] == [
        "Move (1):",
        "  PODS  OWNER                   FROM -> TO",
        "     1  default/replicaset/web  n1 -> n2",
    ]
    assert lines[4:] == [
        "NODES  NODE  PODS    CPU                MEMORY",
        "    1  n1    1 -> 0  2 (50%) -> 0 (0%)  0.0Gi (0%) -> 0.0Gi (0%)",
        "    1  n2    0 -> 1  0 (0%) -> 2 (50%)  0.0Gi (0%) -> 0.0Gi (0%)",
        "",
        "Nothing gets worse.",
    ]


def test_something_worse_ends_with_1(bare: Type) -> None:
    _dump(bare_pod("solo", "n2", cpu="4"))
    code, out, _err = _type(bare, "what-if", "--remove", "n2", "-o", "json")
    found = json.loads(out)
    assert code == 1
    lost = {"pod": "default/solo", "node": "n2", "owner": "", "group": "", "unknownOwner": ""}
    assert found["lost"] == [lost | {"evictedBy": "", "jobFailure": ""}]
    assert found["worse"] == ["1 pod lost: no owner makes another"]
    assert [(row["name"], row["before"]["used"]["cpu"]) for row in found["nodes"]] == [("n2", 4.0)]
    assert found["nodes"][0]["after"] is None


_SCENARIO = """
steps:
- add: 2xcpu=8,memory=16Gi,label:pool=big
- cordon: [n1, n2]
- scale: replicaset/web=5
- taint: added-01=busy=yes:NoSchedule
"""


def test_the_steps_of_a_scenario_happen_in_order(bare: Type) -> None:
    _dump()
    Path("s.yaml").write_text(_SCENARIO)
    code, out, _err = _type(bare, "what-if", "-f", "s.yaml", "-o", "json")
    found = json.loads(out)
    assert code == 0
    assert len(found["starts"]) == 4
    assert {each["node"] for each in found["starts"]} == {"added-01", "added-02"}


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        pytest.param(["--drain", "n9"], "there is no node n9", id="a node that is not there"),
        pytest.param(["--scale", "web"], "scale web: write KIND/NAME=NUMBER", id="scale"),
        pytest.param(["--scale", "job/x=3"], "a Job is not scaled", id="a Job is not scaled"),
        pytest.param(["--priority", "web-0=1"], "write pod=NAME:VALUE", id="priority"),
        pytest.param(["--taint", "n1=a:Never"], "the effect one of NoSchedule", id="taint"),
        pytest.param(["--delete", "web"], "write KIND/NAME", id="delete"),
        pytest.param(["--delete", "thing/web"], "there is no kind 'thing'", id="an unknown kind"),
        pytest.param(["--add", "2xcpu=lots"], "--add cpu=lots: cpu=lots", id="add"),
        pytest.param(["--config", "none.yaml"], "none.yaml", id="a configuration"),
        pytest.param(["--plugin", "none.py:x"], "none.py", id="a plugin"),
    ],
)
def test_a_change_that_cannot_be_read_is_bad_input(
    bare: Type, words: list[str], problem: str
) -> None:
    _dump()
    code, out, err = _type(bare, "what-if", *words)
    assert (code, out) == (2, "")
    assert problem in err


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("steps: []", "no steps", id="no steps"),
        pytest.param("steps: [drain]", "step 1: write one change", id="no mapping"),
        pytest.param("steps: [{drain: 3}]", "step 1: drain: write text", id="a number"),
        pytest.param("steps: [{grow: x}]", "step 1: there is no change 'grow'", id="no change"),
        pytest.param("a: [", "not YAML", id="no YAML"),
    ],
)
def test_a_scenario_that_cannot_be_read_is_bad_input(bare: Type, text: str, problem: str) -> None:
    _dump()
    Path("s.yaml").write_text(text)
    code, _out, err = _type(bare, "what-if", "-f", "s.yaml")
    assert code == 2
    assert problem in err


def test_an_unreadable_object_is_noted(bare: Type) -> None:
    _dump(node_manifest("bad", cpu="many"))
    code, _out, err = _type(bare, "what-if", "--cordon", "n1")
    assert code == 0
    assert err.startswith("note: Node bad: status.allocatable[cpu]:")
    assert err.endswith("it is left out\n")


@pytest.mark.parametrize("words", [("what-if", "--cordon", "n1"), ("capacity",)])
def test_a_webhook_about_new_pods_is_named(words: tuple[str, ...], bare: Type) -> None:
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"]}
    webhook = {"name": "w.example.com", "rules": [{**rule, "resources": ["pods"]}]}
    kind = "MutatingWebhookConfiguration"
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind}
    _dump({**head, "metadata": {"name": "sidecar"}, "webhooks": [webhook]})
    code, _out, err = _type(bare, *words)
    assert (code, err) == (0, f"note: {kind} sidecar is not looked at: webhooks are not called\n")


def test_capacity_counts_replicas(bare: Type) -> None:
    _dump()
    code, out, _err = _type(bare, "capacity", "--like", "replicaset/web")
    assert code == 0
    assert out.splitlines() == [
        "3 more pods like those of replicaset/web fit",
        "The next one finds no node: 0/2 nodes are available: 2 Insufficient cpu.",
        "What binds first: Insufficient cpu, on 2 nodes",
    ]


def test_capacity_says_which_nodes_would_place_what_waits(bare: Type) -> None:
    _dump(bare_pod("w1", cpu="3"), bare_pod("w2", cpu="3"), bare_pod("w3", cpu="3"))
    code, out, _err = _type(bare, "capacity", "--shape", "cpu=8,memory=32Gi")
    assert code == 0
    assert out.splitlines() == [
        "Pods that wait: 2",
        "  PODS  OWNER              REASON",
        "     2  default/pod/w2, …  InsufficientCPU",
        "        0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocat…",
        "",
        "1 more node cpu=8, memory=32Gi places all of them",
        "",
        "2 more nodes like n1 (cpu=4, memory=8Gi) place all of them",
    ]


def test_capacity_says_why_further_nodes_place_nothing(bare: Type) -> None:
    _dump(bare_pod("w1", "n1", cpu="3"), bare_pod("w2", cpu="5"), bare_pod("w3", cpu="16"))
    code, out, _err = _type(bare, "capacity", "--shape", "cpu=8,memory=32Gi")
    assert code == 0
    assert out.splitlines()[5:] == [
        "1 more node cpu=8, memory=32Gi places 1; further ones place none of the others:",
        "  PODS  OWNER           REASON",
        "     1  default/pod/w3  InsufficientCPU",
        "        0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocat…",
        "",
        "nodes like n1 (cpu=4, memory=8Gi) place none, for the same reasons",
    ]


def test_capacity_names_the_taint_of_nodes_that_place_nothing(bare: Type) -> None:
    _dump(bare_pod("w1", cpu="5"))
    code, out, _err = _type(bare, "capacity", "--shape", "cpu=8,memory=32Gi,taint=gpu:NoSchedule")
    assert code == 0
    assert out.splitlines()[5] == "nodes cpu=8, memory=32Gi place none:"
    assert "untolerated taint" in out.splitlines()[8]


def test_capacity_of_files(bare: Type) -> None:
    _dump()
    pod: dict[str, Any] = bare_pod("p", cpu="1")
    del pod["metadata"]["uid"]
    Path("pod.json").write_text(json.dumps(pod))
    Path("mix.json").write_text(json.dumps([]))
    mix = {"apiVersion": "v1", "kind": "List", "items": [pod, replica_set("other", 2, "1")]}
    Path("mix.json").write_text(json.dumps(mix))
    code, out, _err = _type(bare, "capacity", "-f", "pod.json", "-o", "json")
    assert (code, json.loads(out)["room"]["fit"]) == (0, 6)
    code, out, _err = _type(bare, "capacity", "--mix", "mix.json", "-o", "json")
    assert (code, json.loads(out)["room"]["fit"]) == (0, 2)
    code, _out, err = _type(bare, "capacity", "--mix", "mix.json", "-f", "pod.json")
    assert code == 2
    assert "exclude each other" in err


def test_nothing_waits(bare: Type) -> None:
    _dump()
    assert _type(bare, "capacity") == (0, "No pod waits.\n", "")


def test_pods_wait_in_a_cluster_without_nodes(bare: Type) -> None:
    Path("dump.json").write_text(json.dumps([bare_pod("a", "", cpu="1"), bare_pod("b", "")]))
    code, out, _err = _type(bare, "capacity")
    assert (code, out.splitlines()[0]) == (0, "Pods that wait: 2")
    assert "There is no node whose shape could be tried; --shape gives one." in out
    out = _type(bare, "capacity", "--shape", "cpu=4")[1]
    assert "1 more node like cpu=4 (cpu=4, memory=32Gi) places all of them" in out


def test_jobs_that_have_ended_are_not_sent_along() -> None:
    """A cluster may keep thousands of them, and they make no pods any more."""
    jobs = [
        {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": kind.lower(), "namespace": "default"},
            "status": {"conditions": [{"type": kind, "status": "True"}]},
        }
        for kind in ("Complete", "Failed", "Suspended", "FailureTarget")
    ]
    objects = read_objects(json.dumps(jobs).encode(), "test")
    drop_ended_jobs(objects)
    names = [name for _namespace, name in objects.manifests["batch", "Job"]]
    assert names == ["suspended", "failuretarget"]


@pytest.mark.slow
def test_a_running_scheduler_is_asked_and_only_read(
    bare: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The options decide who answers; the server's audit log has reads of owners, and no write."""
    log = tmp_path / "audit.jsonl"
    words = ("what-if", "--add", "2xcpu=8", "--drain", "node-01", "-o", "json")
    with Up(tmp_path, "--nodes", "2", "--audit-log", str(log)) as up:
        up.started()
        monkeypatch.setenv("KUBECONFIG", str(up.kubeconfig))
        # The scheduler's address is recorded soon after the start; the test's timeout is the bound.
        while (record := find(up.kubeconfig)) is None or not record.health:
            pass
        told = bare(*words)
        assert told.exit_code in (0, 1), told.stderr
        found = json.loads(told.stdout)
        assert "From the state of the scheduler of the sandbox" in found["source"]
        added = [each for each in found["nodes"] if each["before"] is None]
        assert [each["name"] for each in added] == ["added-01", "added-02"]
        capacity = bare("capacity", "-o", "json")
        assert json.loads(capacity.stdout)["source"] == found["source"]
        listed = json.loads(bare(*words, "--seed", "1").stdout)
        assert listed["source"].startswith(
            "Computed from lists of the API server, by the configuration of the scheduler of the "
            "sandbox at"
        )
        assert bare("capacity", "--seed", "1").exit_code == 0
        assert bare("explain", "pod", "giant", "--thorough").exit_code == 0
    calls = [json.loads(line) for line in log.read_text().splitlines()]
    verbs = {each["verb"] for each in calls if each.get("userAgent") == "moorage-cli"}
    assert verbs == {"list"}


def test_options_that_are_computed_here_exclude_a_scheduler(bare: Type) -> None:
    _dump()
    code, _out, err = _type(bare, "what-if", "--cordon", "n1", "--scheduler", "a/b")
    assert code == 2
    assert "--from is computed here: leave one of them out" in err
    code, _out, err = _type(bare, "capacity", "--seed", "3", "--scheduler", "a/b")
    assert code == 2
    assert "--from, --seed is computed here" in err
