"""``moorage run``: which server it takes, and which one it asks --experimental for."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from moorage.base.clock import ManualClock
from moorage.cli import scheduling
from moorage.cli.scheduling import (
    SchedulerOptions,
    check_config,
    scheduler_access,
    scheduler_transport,
)
from moorage.client.auth import FixedCredentials, ServerAccess
from moorage.client.http_transport import HttpTransport
from moorage.client.rate_limit import RateLimitedTransport
from moorage.config.load import load_config, parse_config
from moorage.framework.registry import PluginEntry
from moorage.plugins.in_tree import IN_TREE
from moorage.plugins.node_name import NodeName
from tests.cli.conftest import Type

CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def kubeconfig(path: Path, server: str) -> Path:
    path.write_text(
        "{apiVersion: v1, kind: Config, current-context: c,"
        f" clusters: [{{name: c, cluster: {{server: '{server}'}}}}],"
        " users: [{name: c, user: {token: t}}],"
        " contexts: [{name: c, context: {cluster: c, user: c}}]}"
    )
    return path


class _Foreign(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = b'{"gitVersion": "v1.36.2"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def foreign() -> Iterator[str]:
    """Return the address of an API server that is no sandbox."""
    with HTTPServer(("127.0.0.1", 0), _Foreign) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_a_server_that_is_no_sandbox_asks_for_experimental(
    bare: Type, foreign: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = PluginEntry(name="Wombat", plugin_class=NodeName, built=False)
    monkeypatch.setattr(scheduling, "IN_TREE", (missing, *IN_TREE))
    result = bare("run", "--kubeconfig", str(kubeconfig(tmp_path / "k", foreign)))
    assert result.exit_code == 2
    assert result.stderr.startswith(f"moorage: {foreign} is not a moorage sandbox, ")
    assert "Wombat" in result.stderr
    assert result.stderr.endswith("Give --experimental to run it there all the same\n")


def test_a_server_that_does_not_answer_ends_it_with_1(bare: Type, tmp_path: Path) -> None:
    config = kubeconfig(tmp_path / "k", "http://127.0.0.1:1")
    result = bare("run", "--kubeconfig", str(config))
    assert result.exit_code == 1
    assert result.stderr.startswith("moorage: GET http://127.0.0.1:1/version: ")


@pytest.mark.parametrize(
    ("flag", "in_config", "server"),
    [
        pytest.param("flag", "file", "http://flag", id="the flag wins over the configuration"),
        pytest.param("", "file", "http://file", id="the configuration names one"),
        pytest.param("", "", "http://environment", id="the environment names one"),
    ],
)
def test_where_the_server_is_looked_for(
    bare: Type,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    flag: str,
    in_config: str,
    server: str,
) -> None:
    del bare
    for name in ("flag", "file", "environment"):
        kubeconfig(tmp_path / name, f"http://{name}")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "environment"))
    connection = f"clientConnection: {{kubeconfig: {tmp_path / in_config}}}\n" if in_config else ""
    (tmp_path / "config.yaml").write_text(CONFIG + connection)
    options = SchedulerOptions(kubeconfig=str(tmp_path / flag) if flag else "")
    config = load_config(tmp_path / "config.yaml")
    assert scheduler_access(options, config.scheduler, ManualClock()).server == server


def test_a_configuration_is_checked_down_to_its_plugins(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG)
    assert check_config(path).scheduler.profiles[0].scheduler_name == "default-scheduler"


@pytest.mark.parametrize(
    ("limits", "kind"),
    [
        pytest.param("", HttpTransport, id="without qps nothing holds calls back"),
        pytest.param("qps: 20", RateLimitedTransport, id="a qps is honoured"),
    ],
)
async def test_calls_are_limited_as_client_connection_asks(limits: str, kind: type) -> None:
    config = parse_config(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
        f"clientConnection: {{{limits}}}\n"
    )
    access = ServerAccess("http://127.0.0.1:1", FixedCredentials())
    transport = scheduler_transport(config.scheduler, access, ManualClock())
    try:
        assert type(transport) is kind
    finally:
        await transport.close()
