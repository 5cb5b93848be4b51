"""``moorage up`` as a person runs it: real processes, a real port on the loopback interface."""

from __future__ import annotations

import json
import re
import signal
import socket
import ssl
import stat
import subprocess
import urllib.error
import urllib.request
from pathlib import Path

import pytest
import yaml

from sandbox.tests.sandbox.process import Up, alive

ROOT = Path(__file__).resolve().parents[3]
CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


@pytest.mark.slow
def test_up_places_thirty_pods_and_ends_with_exit_code_0(tmp_path: Path) -> None:
    with Up(tmp_path, "--exit-when-settled", "--seed", "7") as up:
        up.started()
        up.note_family_of(2)
        assert up.wait() == 0
        assert alive(up.family, within=20) == []
    lines = up.output
    placed = {
        m[1] for line in lines if (m := re.match(r"default/(\S+)  bound to node-\d\d$", line))
    }
    assert len(placed) == 29
    refused = [line for line in lines if "unschedulable: " in line]
    assert [line.split("  ")[0] for line in refused] == ["default/giant"]
    assert "0/20 nodes are available: 20 Insufficient cpu, 20 Insufficient memory." in refused[0]
    assert re.match(r"settled: 30 pods: 1 unschedulable, ", lines[-1])


@pytest.mark.slow
def test_up_in_one_process_prints_json_lines_and_ends_with_exit_code_0(tmp_path: Path) -> None:
    arguments = ("--exit-when-settled", "--single-process", "-o", "json", "--nodes", "5")
    with Up(tmp_path, *arguments) as up:
        assert up.wait() == 0
    objects = [json.loads(line) for line in up.output]
    assert [each["type"] for each in (objects[0], objects[-1])] == ["started", "ended"]
    assert objects[0]["nodes"] == 5
    assert objects[-1]["settled"] is True
    assert (objects[-1]["pods"], objects[-1]["unschedulable"]) == (30, 1)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_sandbox(tmp_path: Path, number: signal.Signals) -> None:
    with Up(tmp_path, "--nodes", "3") as up:
        up.started()
        assert up.stop(number) == 0
        assert alive(up.family) == []
    assert up.output[-1].startswith("stopped: ")


@pytest.mark.slow
def test_children_of_a_killed_parent_end_by_themselves(tmp_path: Path) -> None:
    with Up(tmp_path, "--nodes", "1", "--empty") as up:
        up.started()
        up.note_family_of(2)
        up.stop(signal.SIGKILL)
        assert alive(up.family, within=20) == []


@pytest.mark.slow
def test_a_scheduler_that_dies_ends_the_sandbox_with_1(tmp_path: Path) -> None:
    with Up(tmp_path, "--nodes", "1") as up:
        up.until("unschedulable")
        up.member("moorage_sandbox.cli.up.scheduler_process").kill()
        assert up.wait() == 1
        assert alive(up.family, within=20) == []
    assert up.output[-1] == "error: the scheduler ended by itself, with code -9"


def _taken_port() -> tuple[socket.socket, int]:
    holder = socket.socket()
    holder.bind(("127.0.0.1", 0))
    holder.listen()
    return holder, holder.getsockname()[1]


@pytest.mark.slow
def test_a_taken_port_is_reported_with_exit_code_2(tmp_path: Path) -> None:
    holder, port = _taken_port()
    with holder, Up(tmp_path, "--port", str(port)) as up:
        assert up.wait() == 2
    assert up.output[-1].startswith(f"error: cannot listen on 127.0.0.1:{port}: ")
    assert "address already in use; choose another port, or 0" in up.output[-1]


@pytest.mark.slow
def test_the_kubeconfig_of_another_cluster_is_not_overwritten(tmp_path: Path) -> None:
    other = tmp_path / "config"
    other.write_text("current-context: production\n")
    with Up(tmp_path, "--empty", "--kubeconfig-out", "config") as up:
        assert up.wait() == 2
    assert up.output[-1] == (
        "error: config is a kubeconfig of another cluster, or something else; "
        "name another file with --kubeconfig-out"
    )
    assert other.read_text() == "current-context: production\n"


@pytest.mark.slow
def test_a_second_signal_ends_the_sandbox_at_once(tmp_path: Path) -> None:
    with Up(tmp_path, "--nodes", "1", "--empty") as up:
        up.started()
        up.note_family_of(2)
        # Held, it cannot end in good order.
        up.member("moorage_sandbox.sandbox.processes.server_process").suspend()
        up.process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            up.process.wait(timeout=0.2)
        assert up.stop(signal.SIGINT) == 130
        assert alive(up.family, within=20) == []


@pytest.mark.slow
def test_calls_without_credentials_get_401_and_the_kubeconfig_is_private(tmp_path: Path) -> None:
    with Up(tmp_path, "--nodes", "1", "--empty", "--no-scheduler") as up:
        up.started()
        assert len(up.family) == 1, "only the server"
        assert stat.S_IMODE(up.kubeconfig.stat().st_mode) == 0o600
        config = yaml.safe_load(up.kubeconfig.read_text())
        url = config["clusters"][0]["cluster"]["server"]
        assert url.startswith("https://127.0.0.1:")
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"{url}/api/v1/pods", context=context, timeout=5)
        with refused.value as answer:
            assert (answer.code, json.loads(answer.read())["reason"]) == (401, "Unauthorized")


def test_the_example_is_the_file_that_up_applies() -> None:
    shipped = ROOT / "sandbox" / "src" / "moorage_sandbox" / "sandbox" / "first.yaml"
    assert (ROOT / "examples" / "first.yaml").read_text() == shipped.read_text()
    kinds = [each["kind"] for each in yaml.safe_load_all(shipped.read_text())]
    assert kinds.count("Pod") == 30
