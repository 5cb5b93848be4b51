"""``moorage run``: which server it takes, who it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.base.clock import ManualClock
from moorage.cli.checking import check_config
from moorage.cli.run.scheduler_options import SchedulerOptions
from moorage.cli.run.scheduling import scheduler_access, scheduler_transport
from moorage.client.auth import FixedCredentials, ServerAccess
from moorage.client.http_transport import HttpTransport
from moorage.client.rate_limit import RateLimitedTransport
from moorage.config.load import load_config, parse_config
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
