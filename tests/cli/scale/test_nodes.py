"""``moorage scale nodes`` against a running sandbox, over HTTPS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from sandbox.tests.sandbox.process import Up
from tests.cli.conftest import Type, errors

POD = """
apiVersion: v1
kind: Pod
metadata: {name: keeps}
spec:
  nodeName: node-03
  containers: [{name: main, image: app}]
"""


@pytest.fixture
def scaled(bare: Type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Type]:
    """Type a command that finds a sandbox of two nodes of its own."""
    with Up(tmp_path, "--nodes", "2", "--empty", "--seed", "1", "--no-scheduler") as up:
        monkeypatch.setenv("KUBECONFIG", str(up.started().kubeconfig))
        yield bare


def names(typed: Type) -> list[str]:
    found = json.loads(typed("get", "nodes", "-o", "json").stdout)
    return [each["metadata"]["name"] for each in found["items"]]


def test_a_cluster_grows_and_shrinks(scaled: Type) -> None:
    grown = scaled("scale", "nodes", "4", "--shape", "cpu=2,memory=4Gi")
    assert (grown.exit_code, grown.stdout) == (0, "4 nodes, added 2: node-03, node-04\n")
    assert scaled("scale", "nodes", "4").stdout == "4 nodes, as before\n"
    assert scaled("apply", "-f", "-", stdin=POD).exit_code == 0

    assert scaled("scale", "nodes", "3").stdout == "3 nodes, removed 1: node-04\n"
    refused = scaled("scale", "nodes", "0")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert errors(refused.stderr) == (
        "error: of the nodes to remove (3), some have pods (1 nodes, 1 pods); nothing was "
        "removed: drain them first, or remove them with their pods by --force\n"
    )
    assert names(scaled) == ["node-01", "node-02", "node-03"]
    forced = scaled("scale", "nodes", "0", "--force", "-o", "json")
    assert json.loads(forced.stdout) == {
        "before": 3,
        "nodes": 0,
        "added": [],
        "removed": ["node-02", "node-01", "node-03"],
    }
    assert names(scaled) == []
    useless = scaled("scale", "nodes", "0", "--shape", "cpu=1")
    assert useless.exit_code == 2
    assert "--shape is for new nodes, and there are 0 nodes already" in useless.stderr


class _NotFound(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(404)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_nodes_of_another_cluster_are_left_alone(bare: Type, tmp_path: Path) -> None:
    server = HTTPServer(("127.0.0.1", 0), _NotFound)
    thread = Thread(target=server.serve_forever)
    thread.start()
    cluster = {"name": "c", "cluster": {"server": f"http://127.0.0.1:{server.server_port}"}}
    config = {
        "clusters": [cluster],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}],
        "current-context": "c",
    }
    file = tmp_path / "config"
    file.write_text(json.dumps(config))
    try:
        refused = bare("scale", "nodes", "0", "--kubeconfig", str(file))
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert refused.exit_code == 2
    assert "this server is no sandbox of moorage, and its nodes are left alone" in refused.stderr
