"""The record of a running sandbox: one holder for each kubeconfig, found while it lives."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from moorage.base.errors import UsageError
from moorage.base.running_sandboxes import SandboxRecord, find, find_all, hold

HOLDER = """
import os, sys, time
from moorage.base.running_sandboxes import SandboxRecord, hold
hold(SandboxRecord(process=os.getpid(), kubeconfig=sys.argv[1], url="https://h:1"))
print("held", flush=True)
sys.stdin.read()
"""


def record(path: Path, **fields: object) -> SandboxRecord:
    return msgspec.structs.replace(
        SandboxRecord(process=os.getpid(), kubeconfig=str(path)), **fields
    )


def test_the_record_of_a_running_sandbox_is_found_with_its_last_change(tmp_path: Path) -> None:
    path = tmp_path / "k"
    with hold(record(path, url="https://a-long-address:65535")) as held:
        held.change(url="https://a:1", state="ready")
        assert find(path) == record(path, url="https://a:1", state="ready")
        assert find(path) == held.record, "looking does not take the lock away"
    assert find(path) is None
    assert list(tmp_path.iterdir()) == []


def test_a_second_sandbox_with_the_same_kubeconfig_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "k"
    with hold(record(path, name="blue", url="https://a:1")):
        with pytest.raises(UsageError) as refused:
            hold(record(path))
        assert str(refused.value) == (
            f"the sandbox blue of this folder runs already (process {os.getpid()}, https://a:1): "
            "`moorage down --name blue` ends it, `moorage up --name NAME` starts another beside it"
        )
    hold(record(path)).release()


def test_the_record_of_a_killed_process_is_out_of_date(tmp_path: Path) -> None:
    path = tmp_path / "k"
    command = [sys.executable, "-c", HOLDER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        assert find(path) == SandboxRecord(
            process=holder.pid, kubeconfig=str(path), url="https://h:1"
        )
        holder.kill()
        holder.wait()
        assert find(path) is None
    with hold(record(path)) as held:
        assert find(path) == held.record


def test_sandboxes_of_a_directory_are_listed_with_the_unnamed_one_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_all() == []
    (tmp_path / ".moorage" / "dead").mkdir(parents=True)
    folder = tmp_path / ".moorage"
    with (
        hold(record(folder / "red" / "kubeconfig", name="red")) as red,
        hold(record(folder / "blue" / "kubeconfig", name="blue")) as blue,
        hold(record(folder / "kubeconfig")) as nameless,
    ):
        assert find_all() == [nameless.record, blue.record, red.record]
