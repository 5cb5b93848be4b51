"""A sandbox whose time runs faster: all its processes agree on it, and long pods end soon."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest
from click.testing import CliRunner

from moorage.base.clock import NS_PER_SECOND, SystemClock, parse_rfc3339
from moorage.cli.main import main
from sandbox.tests.sandbox.process import Up, alive


def _ask(up: Up, *words: str) -> Any:
    done = CliRunner().invoke(main, [*words, "--kubeconfig", str(up.kubeconfig), "-o", "json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


@pytest.mark.slow
def test_a_pod_of_two_minutes_runs_two_minutes_of_the_clusters_time(tmp_path):
    annotations = {"moorage.dev/run-seconds": "120"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "long", "annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
    }
    (tmp_path / "pod.json").write_text(json.dumps(pod))
    with Up(tmp_path, "--speed", "60", "--nodes", "2", "--empty", "-o", "lines") as up:
        up.started()
        _ = CliRunner().invoke(
            main, ["apply", "-f", str(tmp_path / "pod.json"), "--kubeconfig", str(up.kubeconfig)]
        )
        up.until("default/long  finished")
        found = _ask(up, "get", "pod", "long")
        ended = found["status"]["containerStatuses"][0]["state"]["terminated"]
        lease = _ask(up, "get", "lease", "node-01", "-n", "kube-node-lease")
    ran_ns = parse_rfc3339(ended["finishedAt"]) - parse_rfc3339(ended["startedAt"])
    # Times are told in whole seconds.
    assert ran_ns >= 119 * NS_PER_SECOND
    made = parse_rfc3339(found["metadata"]["creationTimestamp"])
    conditions = {each["type"]: each for each in found["status"]["conditions"]}
    scheduled = parse_rfc3339(conditions["PodScheduled"]["lastTransitionTime"])
    # The server made it, the scheduler bound it, the agents ran it: in this order by one clock.
    assert made <= scheduled <= parse_rfc3339(ended["startedAt"])
    assert parse_rfc3339(lease["spec"]["renewTime"]) > parse_rfc3339(ended["startedAt"])


@pytest.mark.slow
def test_time_stands_still_until_it_is_stepped(tmp_path):
    annotations = {"moorage.dev/start-seconds": "10", "moorage.dev/run-seconds": "60"}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "long", "annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]},
    }
    (tmp_path / "pod.json").write_text(json.dumps(pod))
    with Up(tmp_path, "--speed", "0", "--nodes", "2", "--empty", "-o", "lines") as up:
        up.started()
        begin = _ask(up, "time", "show")
        assert begin["speed"] == 0
        _ = CliRunner().invoke(
            main, ["apply", "-f", str(tmp_path / "pod.json"), "--kubeconfig", str(up.kubeconfig)]
        )
        # What takes no time happens: it is scheduled.
        up.until("default/long  bound to")
        pod = _ask(up, "get", "pod", "long")
        assert pod["status"]["phase"] == "Pending"
        assert pod["metadata"]["creationTimestamp"] == begin["now"][:19] + "Z"
        assert _ask(up, "time", "show") == begin
        after = _ask(up, "time", "step", "30", "--at", "100")
        assert (_elapsed(begin, after), after["speed"]) == (30.0, 0)
        up.until("default/long  running")
        assert _ask(up, "time", "show") == after
        after = _ask(up, "time", "step", "60", "--at", "100")
        assert _elapsed(begin, after) == 90.0
        up.until("default/long  finished")
        # Heartbeats of the nodes kept pace.
        conditions = _ask(up, "get", "node", "node-01")["status"]["conditions"]
        assert {"type": "Ready", "status": "True"}.items() <= conditions[-1].items()
        assert up.stop() == 0


def _elapsed(begin: Any, end: Any) -> float:
    return (parse_rfc3339(end["now"]) - parse_rfc3339(begin["now"])) / NS_PER_SECOND


def _now(up: Up, name: str) -> int:
    """Return the cluster's time, as the server stamps it on a new object."""
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}
    (up.directory / f"{name}.json").write_text(json.dumps(manifest))
    done = CliRunner().invoke(
        main,
        ["apply", "-f", str(up.directory / f"{name}.json"), "--kubeconfig", str(up.kubeconfig)],
    )
    assert done.exit_code == 0, done.output
    return parse_rfc3339(_ask(up, "get", "configmap", name)["metadata"]["creationTimestamp"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "end",
    [
        pytest.param(signal.SIGTERM, id="ended in good order"),
        pytest.param(signal.SIGKILL, id="killed"),
    ],
)
def test_time_never_runs_backwards_in_a_cluster_that_is_kept(tmp_path, end):
    options = ["--data", "d", "--nodes", "1", "--empty", "-o", "lines"]
    with Up(tmp_path, "--speed", "1000", *options) as up:
        up.started()
        first = _now(up, "a")
        up.member("moorage_sandbox.sandbox.processes.server_process")
        up.stop(end)
        assert not alive(up.family, within=20)
    assert first > SystemClock().now_ns() + 60 * NS_PER_SECOND
    with Up(tmp_path, *options) as up:
        up.until("ahead of this machine's")
        up.started()
        second = _now(up, "b")
        assert up.stop() == 0
    assert second >= first
    with Up(tmp_path, "--speed", "0", *options) as up:
        up.started()
        assert parse_rfc3339(_ask(up, "time", "show")["now"]) >= second
        assert _now(up, "c") >= second
        assert up.stop() == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(
            ["--speed", "60", "--single-process"], "leave out --single-process", id="one process"
        ),
        pytest.param(["--speed", "0.5"], "stands still (0) or runs", id="slower"),
    ],
)
def test_contradictory_options_are_refused_before_the_start(tmp_path, words, message):
    out = str(tmp_path / "kubeconfig")
    done = CliRunner().invoke(main, ["up", "--kubeconfig-out", out, *words])
    assert (done.exit_code, message in done.output) == (2, True), done.output
