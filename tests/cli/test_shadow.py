"""``moorage shadow``: bad input, the names of profiles, and its whole way beside a sandbox."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.base.errors import UsageError
from moorage.cli.shadow.running import serving
from moorage.config.load import parse_config
from moorage_sandbox.testing.builders import pod_manifest
from sandbox.tests.sandbox.process import Up
from scheduler.tests.service.test_group_attempt import group
from tests.cli.conftest import Type

TWO_PROFILES = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: packing
- schedulerName: default-scheduler
"""
SECONDS_MAX = 60.0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        pytest.param(
            ["--for", "soon"], "'--for': invalid duration 'soon'", id="a duration that is none"
        ),
        pytest.param(["--for", "0s"], "longer than 0s", id="no time"),
        pytest.param(["--config", "absent.yaml"], "absent.yaml", id="no such configuration"),
        pytest.param(["--as", "x=y"], "there is no profile y", id="no such profile"),
        pytest.param(["--as", "x="], "write NAME or NAME=PROFILE", id="an empty profile"),
        pytest.param(
            ["--feature-gates", "GangScheduling=true"],
            "needs GenericWorkload=true",
            id="a gate without the gate that it needs",
        ),
        pytest.param(["--to", "absent/file"], "cannot write it", id="no such directory"),
    ],
)
def test_bad_input_ends_with_2(bare: Type, words: list[str], told: str) -> None:
    result = bare("shadow", *words)
    assert result.exit_code == 2
    assert told in result.stderr
    assert len(result.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("served", "names"),
    [
        pytest.param([], ["packing", "default-scheduler"], id="each its own"),
        pytest.param(["mine"], ["mine", "default-scheduler"], id="the first profile"),
        pytest.param(["default-scheduler=packing"], ["default-scheduler"], id="in another's place"),
        pytest.param(
            ["mine=default-scheduler"], ["packing", "mine"], id="a profile that is not the first"
        ),
    ],
)
def test_profiles_serve_other_names(served: list[str], names: list[str]) -> None:
    found = serving(parse_config(TWO_PROFILES), served)
    assert [each.scheduler_name for each in found.scheduler.profiles] == names


def test_a_profile_that_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="there are packing, default-scheduler"):
        serving(parse_config(TWO_PROFILES), ["mine=other"])


def _until(condition: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    end = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < end, "not in time"
        try:
            process.wait(timeout=0.1)
        except subprocess.TimeoutExpired:
            continue
        raise AssertionError(process.communicate())


@pytest.mark.slow
@pytest.mark.parametrize("flags", [[], ["--groups"]], ids=["pods", "groups of Kubernetes"])
def test_beside_a_sandbox_it_reads_only_and_ends_with_the_report_at_ctrl_c(
    bare: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, flags: list[str]
) -> None:
    """The same configuration decides: all agree; the audit log has no write of the command."""
    log, lines, notes = (tmp_path / name for name in ("audit.jsonl", "lines.jsonl", "notes"))
    with Up(tmp_path, "--nodes", "3", "--empty", "--audit-log", str(log), *flags) as up:
        up.started()
        monkeypatch.setenv("KUBECONFIG", str(up.kubeconfig))
        command = [sys.executable, "-m", "moorage.cli.main", "shadow", "-o", "json", *flags]
        with notes.open("w") as told:
            process = subprocess.Popen(
                [*command, "--to", str(lines)], stdout=subprocess.PIPE, stderr=told, text=True
            )
            try:
                _until(lambda: "comparing begins" in notes.read_text(), process)
                member: Any = {"schedulingGroup": {"podGroupName": "g"}} if flags else {}
                pods = [pod_manifest(f"p{number}", cpu="1", **member) for number in range(6)]
                for each in (group(least=6), *pods) if flags else pods:
                    assert bare("apply", "-f", "-", stdin=json.dumps(each)).exit_code == 0
                _until(lambda: len(lines.read_text().splitlines()) == 6, process)
                process.send_signal(signal.SIGINT)
                out, _ = process.communicate(timeout=SECONDS_MAX)
            finally:
                process.kill()
                process.wait()
    report = json.loads(out)
    assert (process.returncode, report["differ"]) == (0, 0), report
    assert sum(report["outcomes"].values()) == 6
    assert report["courses"]["real"]["pods"] == 6
    if not flags:  # a group that came pod by pod may still be in backoff in its own course
        assert report["courses"]["own"]["pods"] == 6
    calls = [json.loads(line) for line in log.read_text().splitlines()]
    verbs = {each["verb"] for each in calls if each.get("userAgent") == "moorage-shadow"}
    assert verbs <= {"list", "watch"}
    assert verbs
