"""``moorage explain pod`` through kubectl, to an address, and through a proxy to pods.

The sandbox's server has no proxy to pods, so a small server plays the part of an API server that
has one: it hands every call below the pod's proxy path to the sandbox's real scheduler.
"""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from moorage.base.running_sandboxes import find
from sandbox.tests.sandbox.process import Up
from tests.cli.conftest import Type, errors, settle
from tests.kubectl.install import RELEASES, NoKubectlError, kubectl_path

PROXY = "/api/v1/namespaces/kube-system/pods/https:moorage-0:10259/proxy"
POD = "{apiVersion: v1, kind: Pod, metadata: {name: wide}, spec: {containers: [{name: c, image: x, \
resources: {requests: {cpu: 900}}}]}}"
FIRST = "pod default/wide: never fits here, not even on an empty node, because of cpu (it requests"
LAST = "From the scheduler's own state, at this moment."

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


@pytest.fixture
def wide(typed: Type, sandbox: Up) -> Iterator[Type]:
    """Return a way to type commands, with a pod that is larger than every node."""
    assert typed("apply", "-f", "-", stdin=POD).exit_code == 0
    settle(sandbox)
    yield typed
    assert typed("delete", "pod", "wide").exit_code == 0


def _health(sandbox: Up) -> str:
    record = find(sandbox.kubeconfig)
    assert record is not None
    return record.health


def test_kubectl_runs_it_as_a_plugin(wide: Type, sandbox: Up) -> None:
    try:
        kubectl = kubectl_path(RELEASES[0])
    except NoKubectlError as missing:
        pytest.skip(str(missing))
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    result = subprocess.run(
        [kubectl, "moorage", "explain", "pod", "wide", "-n", "default"],
        env={**os.environ, "PATH": path, "KUBECONFIG": str(sandbox.kubeconfig)},
        capture_output=True,
        text=True,
        check=False,
    )
    lines = result.stdout.splitlines()
    assert (result.returncode, errors(result.stderr)) == (0, "")
    assert lines[0].startswith(FIRST)
    assert lines[-1] == LAST


def test_an_address_is_asked_as_after_a_port_forward(wide: Type, sandbox: Up) -> None:
    words = ("explain", "pod", "wide", "--scheduler", _health(sandbox))
    found = wide(*words, "--insecure-skip-tls-verify")
    assert found.stdout.splitlines()[0].startswith(FIRST)
    assert found.stdout.splitlines()[-1] == LAST
    assert wide(*words).exit_code == 1, "the certificate is not trusted"


def test_a_pod_is_asked_through_the_api_servers_proxy(
    wide: Type, sandbox: Up, tmp_path: Path
) -> None:
    with _proxying(_health(sandbox)) as (address, paths):
        file = _kubeconfig(tmp_path, address)
        words = ("--scheduler", "kube-system/moorage-0", "--kubeconfig", file)
        found = wide("explain", "pod", "wide", *words, "--node", "node-01", "-o", "json")
        attempt = wide("explain", "pod", "wide", *words, "--attempt", "1")
        missing = wide("explain", "pod", "nobody", *words)
    answer = json.loads(found.stdout)
    assert (answer["where"], answer["source"]) == ("never", LAST)
    assert attempt.stdout.startswith("pod default/wide, attempt 1, ")
    assert missing.exit_code == 1
    assert 'pods "nobody" not found' in missing.stderr
    assert paths[0] == f"{PROXY}/moorage/v1/explain?pod=default%2Fwide&node=node-01"


def test_changes_are_tried_through_the_api_servers_proxy(
    wide: Type, sandbox: Up, tmp_path: Path
) -> None:
    """The played server has no Deployments; the question is sent without."""
    with _proxying(_health(sandbox)) as (address, paths):
        file = _kubeconfig(tmp_path, address)
        words = ("--scheduler", "kube-system/moorage-0", "--kubeconfig", file)
        found = wide("what-if", "--cordon", "node-01", *words, "-o", "json")
        wrong = wide("what-if", "--drain", "nowhere", *words)
    answer = json.loads(found.stdout)
    assert "default/wide" in [each["pod"] for each in answer["stillPending"]]
    assert "kube-system/moorage-0 through" in answer["source"]
    assert (wrong.exit_code, "there is no node nowhere" in wrong.stderr) == (2, True)
    assert f"{PROXY}/moorage/v1/what-if" in paths


@contextmanager
def _proxying(scheduler: str) -> Iterator[tuple[str, list[str]]]:
    """Play an API server whose proxy reaches the scheduler; yields its address, and the paths."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    paths: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.hand_on(None)

        def do_POST(self) -> None:
            self.hand_on(self.rfile.read(int(self.headers["Content-Length"])))

        def hand_on(self, body: bytes | None) -> None:
            paths.append(self.path)
            url = scheduler + self.path.removeprefix(PROXY)
            try:
                with urllib.request.urlopen(url, body, timeout=60, context=trusting) as answer:
                    status, body = answer.status, answer.read()
            except urllib.error.HTTPError as refused:
                status, body = refused.code, refused.read()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - its name
            del format, args

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", paths
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _kubeconfig(folder: Path, address: str) -> str:
    file = folder / "in-cluster"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": address}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    file.write_text(json.dumps(content))
    return str(file)
