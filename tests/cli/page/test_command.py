"""``moorage dashboard``: what it refuses, and that it writes nothing to a real server."""

from __future__ import annotations

import http.cookiejar
import json
import re
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sandbox.tests.sandbox.process import Up
from tests.cli.conftest import Type

SECONDS_MAX = 120
CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


class Opened:
    """A page whose login link was followed."""

    def __init__(self, link: str) -> None:
        self._base = link.partition("/login")[0]
        cookies = urllib.request.HTTPCookieProcessor(http.cookiejar.CookieJar())
        self._opener = urllib.request.build_opener(cookies)
        self._opener.open(link, timeout=SECONDS_MAX).close()
        self._csrf = self.read("/page/v1/about")["csrf"]

    def read(self, path: str, body: object = None) -> Any:
        request = urllib.request.Request(self._base + path)
        if body is not None:
            request.data = json.dumps(body).encode()
            request.add_header("Origin", self._base)
            request.add_header("X-Moorage-Csrf", self._csrf)
        with self._opener.open(request, timeout=SECONDS_MAX) as answer:
            return json.load(answer)


@contextmanager
def served(directory: Path, *words: str) -> Iterator[Opened]:
    """Run the command and open its page."""
    command = [sys.executable, "-m", "moorage.cli.main", "dashboard", "--address", "127.0.0.1:0"]
    process = subprocess.Popen([*command, *words], stdout=subprocess.PIPE, cwd=directory, text=True)
    ending = threading.Timer(SECONDS_MAX, process.kill)  # the read below ends, whatever happens
    ending.start()
    assert process.stdout is not None
    try:
        link = re.search(r"http://\S+", process.stdout.readline())
        assert link is not None
        yield Opened(link[0])
    finally:
        ending.cancel()
        process.terminate()
        assert process.wait(SECONDS_MAX) == 0
        process.stdout.close()


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_the_audit_log_has_no_write_of_the_page(tmp_path: Path) -> None:
    log, config = tmp_path / "audit.jsonl", tmp_path / "config.yaml"
    config.write_text(CONFIG)
    with Up(tmp_path, "--nodes", "5", "--seed", "7", "--audit-log", str(log)) as up:
        up.until("/login?token=")
        kubeconfig = ("--kubeconfig", str(up.kubeconfig))
        with served(tmp_path, *kubeconfig) as asking:
            about = asking.read("/page/v1/about")
            assert "everything that the scheduler of the sandbox" in about["rights"]
            assert (about["acts"], about["watches"]) == ([], False)
            assert len(asking.read("/page/v1/state")["nodes"]) == 5
        with served(tmp_path, *kubeconfig, "--config", str(config)) as watching:
            about = watching.read("/page/v1/about")
            assert "with the rights of the user of" in about["rights"]
            assert (about["acts"], about["watches"]) == ([], True)
            assert len(watching.read("/page/v1/state")["nodes"]) == 5
            told = watching.read("/moorage/v1/explain?pod=default%2Fgiant")["explanation"]
            assert "never fits here" in told["sentence"]
            change = {"change": "cordon", "name": "node-01"}
            tried = watching.read("/moorage/v1/what-if", {"changes": [change]})
            assert tried["kind"] == "WhatIf"
    calls = [json.loads(line) for line in log.read_text().splitlines()]
    verbs = {each["verb"] for each in calls if each.get("userAgent") == "moorage-dashboard"}
    assert verbs <= {"get", "list", "watch"}
    assert verbs


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(
            ("--address", "10270"), "--address 10270: write ADDRESS:PORT", id="no address"
        ),
        pytest.param(
            ("--scheduler", "kube-system/moorage-0", "--config", "config.yaml"),
            "--scheduler and --lease ask a running scheduler; --config and --plugin compute here",
            id="a scheduler and a configuration",
        ),
        pytest.param(("--kubeconfig", "nowhere"), "nowhere", id="no kubeconfig"),
        pytest.param(
            ("--login", "token", "--config", "config.yaml"),
            "--login token asks a running scheduler, with the rights of each viewer",
            id="viewers' tokens and a configuration",
        ),
        pytest.param(
            ("--login", "token", "--scheduler", "https://127.0.0.1:1", "--token", "t"),
            "--login token asks with the token of each viewer: leave --token out",
            id="viewers' tokens and a token",
        ),
        pytest.param(
            ("--tls-cert-file", "config.yaml"),
            "--tls-cert-file and --tls-private-key-file are given both or not at all",
            id="a certificate without a key",
        ),
        pytest.param(
            ("--tls-cert-file", "config.yaml", "--tls-private-key-file", "config.yaml"),
            "--tls-cert-file and --tls-private-key-file config.yaml, config.yaml: ",
            id="no certificate",
        ),
    ],
)
def test_what_cannot_be_served_is_refused(
    bare: Type,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "config.yaml").write_text(CONFIG)
    done = bare("dashboard", *words)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
