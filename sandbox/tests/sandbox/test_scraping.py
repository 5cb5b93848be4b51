"""Prometheus' way to the metrics: a service account, its token, and a scheduler under roles."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import aiohttp
import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from moorage import Sandbox
from moorage.base.clock import SystemClock
from moorage.cli.run.scheduler_options import SchedulerOptions
from moorage.client.http_transport import HttpTransport
from moorage.client.kubeconfig import find_access
from moorage.client.transport import Call
from moorage_sandbox.cli.up.scheduler_settings import SchedulerSettings
from moorage_sandbox.sandbox.processes.child_process import encode_settings
from moorage_sandbox.sandbox.settings import SchedulerReport

pytestmark = pytest.mark.slow

ROLES = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: prometheus, namespace: default}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: nobody, namespace: default}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: scrape-scheduler}
rules:
- {nonResourceURLs: [/metrics, /moorage/v1/*], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: scrape-scheduler}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: scrape-scheduler}
subjects:
- {kind: ServiceAccount, name: prometheus, namespace: default}
"""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
profiles:
- schedulerName: second
"""


@contextmanager
def scheduler(folder: Path, kubeconfig: Path, config: str = CONFIG) -> Iterator[str]:
    """Run a scheduler on a free port, with every path closed and all told; yield its address."""
    (folder / "scheduler.yaml").write_text(config)
    reviewing = ("authentication-kubeconfig", "authorization-kubeconfig")
    flags = {"bind-address": "127.0.0.1", **dict.fromkeys(reviewing, str(kubeconfig))}
    options = SchedulerOptions(
        kubeconfig=str(kubeconfig),
        config=folder / "scheduler.yaml",
        flags={**flags, "cert-dir": str(folder / "certs")},
        verbosity=10,
        free_port=True,
    )
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(
            [sys.executable, "-m", "moorage_sandbox.cli.up.scheduler_process"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
        ) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(encode_settings(SchedulerSettings(options=options)))
        process.stdin.flush()
        try:
            reports = map(partial(msgspec.json.decode, type=SchedulerReport), process.stdout)
            yield next(report.serving for report in reports if report.serving)
        finally:
            process.terminate()


def token_of(name: str, kubeconfig: Path, *, namespace: str = "default") -> str:
    """Return a token of a service account."""
    body = json.dumps({"spec": {"expirationSeconds": 600}}).encode()
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token"

    async def ask() -> str:
        transport = HttpTransport(find_access(str(kubeconfig), clock=SystemClock()))
        try:
            answer = await transport.request(Call("POST", path, body=body))
        finally:
            await transport.close()
        return str(json.loads(answer.body)["status"]["token"])

    return asyncio.run(ask())


def read(url: str, *, trusting: Path, token: str = "") -> tuple[int, str]:
    """Read a page as Prometheus does: the certificate is verified, the token is presented."""
    headers = {"Authorization": f"Bearer {token}"} if token else {}

    async def ask() -> tuple[int, str]:
        connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cafile=trusting))
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.get(url, headers=headers) as answer,
        ):
            return answer.status, await answer.text()

    return asyncio.run(ask())


def test_prometheus_scrapes_with_the_token_of_its_service_account(tmp_path: Path) -> None:
    with Sandbox(arguments=["--rbac"]) as sandbox:
        sandbox.apply(ROLES)
        tokens = {name: token_of(name, sandbox.kubeconfig) for name in ("prometheus", "nobody")}
        own = sandbox.kubeconfig.with_name(f"{sandbox.kubeconfig.name}-scheduler")
        with scheduler(tmp_path, own) as address:
            trusting = tmp_path / "certs" / "kube-scheduler.crt"
            page = f"{address}/metrics"
            status, text = read(page, trusting=trusting, token=tokens["prometheus"])
            assert status == 200
            families = {family.name for family in text_string_to_metric_families(text)}
            assert {"scheduler_pending_pods", "apiserver_delegated_authn_request"} <= families
            assert read(page, trusting=trusting, token=tokens["nobody"])[0] == 403
            assert read(page, trusting=trusting)[0] == 403
            assert (
                read(f"{address}/configz", trusting=trusting, token=tokens["prometheus"])[0] == 403
            )
            assert read(f"{address}/healthz", trusting=trusting) == (200, "ok")
            asked = [sys.executable, "-m", "moorage", "queue", "--scheduler", address]
            asked += ["--certificate-authority", str(trusting)]
            for words, code, told in (
                (["--token", tokens["prometheus"]], 0, "note: no pods wait"),
                ([], 1, 'User "system:anonymous" cannot get path "/moorage/v1/queue"'),
            ):
                done = subprocess.run(
                    [*asked, *words], capture_output=True, text=True, timeout=60, check=False
                )
                assert (done.returncode, told in done.stderr) == (code, True), done.stderr
