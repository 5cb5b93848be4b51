"""What people type by habit: --version, get all, logs, events, cordon, drain, uncordon."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from moorage import __version__
from moorage.base.errors import UsageError
from moorage_sandbox.cli.maintenance.drain import DrainOptions, pods_to_evict
from sandbox.tests.sandbox.process import Up
from tests.cli.conftest import Type, settle

_POD = """
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: daily}}
spec:
  nodeName: {node}
  terminationGracePeriodSeconds: 0
  containers: [{{name: c, image: i}}]
"""
_NAMESPACE = "{apiVersion: v1, kind: Namespace, metadata: {name: daily}}"


def test_the_version_is_printed(bare: Type) -> None:
    result = bare("--version")
    assert (result.exit_code, result.stdout) == (0, f"moorage {__version__}\n")


def test_get_all_lists_the_kinds_of_the_category(typed: Type, sandbox: Up) -> None:
    _create(typed, "listed", "node-01")
    result = typed("get", "all", "-n", "daily", "-o", "name")
    assert "pod/listed\n" in result.stdout
    assert result.exit_code == 0
    assert "service/kubernetes" in typed("get", "all", "-n", "default", "-o", "name").stdout


def test_an_unknown_kind_is_still_refused(typed: Type) -> None:
    result = typed("get", "everything")
    assert result.exit_code == 2
    assert 'the server does not have a resource type "everything"' in result.stderr


@pytest.mark.parametrize("words", [("nodes",), ("node", "node-02")])
def test_whole_objects_are_printed_without_the_owners_of_fields(
    typed: Type, words: tuple[str, ...]
) -> None:
    for form in ("json", "yaml"):
        assert "managedFields" not in typed("get", *words, "-o", form).stdout


def test_logs_are_printed(typed: Type, sandbox: Up) -> None:
    _create(typed, "talker", "node-01")
    settle(sandbox)
    result = typed("logs", "talker", "-n", "daily", "--since", "1h")
    assert result.exit_code == 0, result.stderr
    assert typed("logs", "nobody", "-n", "daily").exit_code == 1


def test_events_are_about_one_object_or_all(typed: Type, sandbox: Up) -> None:
    manifest = '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"huge","namespace":"daily"},'
    manifest += '"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":'
    manifest += '{"cpu":"900"}}}]}}'
    assert typed("apply", "-f", "-", stdin=f"{_NAMESPACE}\n---\n{manifest}").exit_code == 0
    settle(sandbox)
    result = typed("events", "-n", "daily", "--for", "pod/huge")
    assert "FailedScheduling   pod/huge   0/" in result.stdout
    report = json.loads(typed("events", "-A", "-o", "json").stdout)
    assert any(each["involvedObject"]["name"] == "huge" for each in report["items"])
    assert typed("events", "--for", "huge").exit_code == 2
    typed("delete", "pod", "huge", "-n", "daily")


def test_a_node_is_cordoned_drained_and_uncordoned(typed: Type, sandbox: Up) -> None:
    _create(typed, "leaving", "node-02")
    assert typed("cordon", "node-02").stdout == "node/node-02 cordoned\n"
    assert typed("cordon", "node-02").stdout == "node/node-02 already cordoned\n"
    refused = typed("drain", "node-02")
    assert refused.exit_code == 2
    assert "the drain needs --force for daily/leaving" in refused.stderr
    drained = typed("drain", "node-02", "--force", "--timeout", "1m")
    assert drained.exit_code == 0, drained.stderr
    # Pods of other tests may be on the node, too.
    lines = drained.stdout.splitlines()
    assert "pod/leaving evicted" in lines
    assert lines[-1] == "node/node-02 drained"
    assert typed("get", "pod", "leaving", "-n", "daily").exit_code == 1
    assert typed("uncordon", "node-02").stdout == "node/node-02 uncordoned\n"
    node = json.loads(typed("get", "node", "node-02", "-o", "json").stdout)
    assert "unschedulable" not in node["spec"]


_SET = {"kind": "DaemonSet", "controller": True}
_REPLICAS = {"kind": "ReplicaSet", "controller": True}


def test_a_drain_needs_both_flags_for_local_data_without_a_controller() -> None:
    pod = {
        "metadata": {"name": "p", "namespace": "n"},
        "spec": {"volumes": [{"name": "v", "emptyDir": {}}]},
        "status": {"phase": "Running"},
    }
    both = "the drain needs --force for n/p; --delete-emptydir-data for n/p"
    with pytest.raises(UsageError, match=both):
        pods_to_evict([pod], DrainOptions())
    with pytest.raises(UsageError, match="the drain needs --delete-emptydir-data for n/p"):
        pods_to_evict([pod], DrainOptions(force=True))
    options = DrainOptions(force=True, delete_emptydir_data=True)
    assert pods_to_evict([pod], options) == [pod]


@pytest.mark.parametrize(
    ("pod", "flag"),
    [
        pytest.param({"ownerReferences": [_SET]}, "--ignore-daemonsets", id="of a DaemonSet"),
        pytest.param({}, "--force", id="without a controller"),
        pytest.param(
            {"ownerReferences": [_REPLICAS], "volumes": [{"name": "v", "emptyDir": {}}]},
            "--delete-emptydir-data",
            id="with local data",
        ),
        pytest.param({"ownerReferences": [_REPLICAS]}, "", id="that is made again"),
        pytest.param({"phase": "Succeeded"}, "", id="that has finished"),
    ],
)
def test_a_drain_asks_for_the_flag_of_a_pod(pod: dict[str, Any], flag: str) -> None:
    whole = {
        "metadata": {
            "name": "p",
            "namespace": "n",
            "ownerReferences": pod.get("ownerReferences", []),
        },
        "spec": {"volumes": pod.get("volumes", [])},
        "status": {"phase": pod.get("phase", "Running")},
    }
    if not flag:
        assert pods_to_evict([whole], DrainOptions()) == [whole]
        return
    with pytest.raises(UsageError, match=f"the drain needs {flag} for n/p"):
        pods_to_evict([whole], DrainOptions())
    options = DrainOptions(**{flag.strip("-").replace("-", "_"): True})
    assert pods_to_evict([whole], options) == ([] if flag == "--ignore-daemonsets" else [whole])


def test_a_snapshot_is_not_overwritten_unasked(typed: Type, tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    assert typed("snapshot", "save", str(file)).exit_code == 0
    first = file.read_bytes()
    file.write_text("precious")
    refused = typed("snapshot", "save", str(file))
    assert refused.exit_code == 2
    assert f"error: {file} exists: --force overwrites it\n" in refused.stderr
    assert file.read_text() == "precious"
    assert typed("snapshot", "save", str(file), "--force").exit_code == 0
    assert file.read_bytes()[:40] == first[:40]


def test_a_snapshot_goes_to_standard_output_and_comes_from_standard_input(
    typed: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    saved = typed("snapshot", "save", "-")
    assert saved.exit_code == 0, saved.stderr
    objects = json.loads(saved.stdout)["items"]
    assert f"standard output: {len(objects)} objects: " in saved.stderr
    assert list(tmp_path.iterdir()) == []
    loaded = typed("snapshot", "load", "-", "--dry-run", stdin=saved.stdout)
    assert loaded.exit_code == 0, loaded.stderr
    assert "nothing loaded: a dry run" in loaded.stdout
    refused = typed("snapshot", "save", "-", "-o", "json")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert "standard output has the objects; name a FILE" in refused.stderr


def test_a_snapshot_is_written_into_a_pipe_and_does_not_replace_it(
    typed: Type, tmp_path: Path
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as threads:
        content = threads.submit(pipe.read_bytes)
        assert typed("snapshot", "save", str(pipe)).exit_code == 0
        assert json.loads(content.result())["kind"] == "List"
    assert pipe.is_fifo()
    assert list(tmp_path.iterdir()) == [pipe]


def _create(typed: Type, name: str, node: str) -> None:
    text = f"{_NAMESPACE}\n---\n{_POD.format(name=name, node=node)}"
    result = typed("apply", "-f", "-", stdin=text)
    assert result.exit_code == 0, result.stderr
