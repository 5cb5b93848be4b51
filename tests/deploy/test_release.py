"""A release of the chart by a real Helm: its plugin decides, its readers ask, and its test passes.

The sandbox runs no containers: the scheduler runs next to it, with the arguments that the chart
gives its container, the files of the chart's ConfigMaps, and the rights of its service account.
Tunnels to pods, which the sandbox does not have, are those of a small server before it.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPCookieProcessor, Request, build_opener

import msgspec
import pytest
from aiohttp import web

from moorage import Sandbox
from moorage.base.clock import SystemClock
from moorage.client.auth import Credential, FixedCredentials, bearer
from moorage.client.http_transport import HttpTransport
from moorage.client.kubeconfig import find_access
from moorage.client.transport import Answer, Call
from sandbox.tests.sandbox.test_scraping import read, token_of
from scheduler.tests.client.leaders.forwarding import port_forward
from tests.deploy.chart import CHART, ROOT, helm
from tests.deploy.test_installed import kubeconfig_of
from tests.kubectl.install import RELEASES, NoKubectlError, kubectl_path

pytestmark = [pytest.mark.slow, pytest.mark.kubectl, pytest.mark.timeout(240)]

VALUES = {
    "profiles": [
        {
            "schedulerName": "acme",
            "plugins": {"multiPoint": {"enabled": [{"name": "KeepHeadroom"}]}},
            "pluginConfig": [{"name": "KeepHeadroom", "args": {"cpuPercent": 25}}],
        }
    ],
    "plugins": {"load": ["headroom.py:KeepHeadroom"]},
    "page": {"enabled": True},
    "questions": {"readers": [{"kind": "ServiceAccount", "name": "reader", "namespace": "acme"}]},
    "rights": {
        "rules": [
            {"apiGroups": ["example.com"], "resources": ["racks"], "verbs": ["list", "watch"]}
        ]
    },
}
ACCOUNTS = """
apiVersion: v1
kind: ServiceAccount
metadata: {name: reader, namespace: acme}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: stranger, namespace: acme}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: reader-views}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}
subjects:
- {kind: ServiceAccount, name: reader, namespace: acme}
"""


def pod(name: str, scheduler: str, cpu: str) -> str:
    """Return a pod that asks for cpu, and for a scheduler."""
    return f"""
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: acme}}
spec:
  schedulerName: {scheduler}
  containers:
  - {{name: a, image: "a:1", resources: {{requests: {{cpu: "{cpu}"}}}}}}
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(nodes=1, arguments=["--rbac"]) as running:
        yield running


@pytest.fixture(scope="module")
def release(sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """Install the release, and return the arguments of Helm that name its cluster and namespace."""
    folder = tmp_path_factory.mktemp("release")
    (folder / "values.yaml").write_text(json.dumps(VALUES))
    where = ["--kubeconfig", str(sandbox.kubeconfig), "--namespace", "acme"]
    plugin = ROOT / "examples" / "plugins" / "keep_headroom.py"
    words = ["install", "acme", str(CHART), *where, "--create-namespace"]
    words += ["--values", str(folder / "values.yaml")]
    done = helm(*words, "--set-file", rf"plugins.files.headroom\.py={plugin}")
    assert done.returncode == 0, done.stderr
    assert "helm test acme -n acme" in done.stdout
    assert "schedulerName: acme" in done.stdout
    sandbox.apply(ACCOUNTS)
    return where


def got(sandbox: Sandbox, *words: str) -> Any:
    """Return what kubectl gets."""
    try:
        program = kubectl_path(RELEASES[0])
    except NoKubectlError as error:
        pytest.skip(str(error))
    command = [str(program), "--kubeconfig", str(sandbox.kubeconfig), "-n", "acme", "get", *words]
    done = subprocess.run(
        [*command, "-o", "json"], capture_output=True, text=True, timeout=60, check=True
    )
    return json.loads(done.stdout)


def command_of(sandbox: Sandbox, folder: Path) -> list[str]:
    """Return what the container of the release runs, with its files and its service account."""
    spec = got(sandbox, "deployment", "acme-moorage")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    sources = {
        each["name"]: each["configMap"]["name"] for each in spec["volumes"] if "configMap" in each
    }
    arguments = list(container["args"])
    for mount in container["volumeMounts"]:
        if mount["name"] not in sources:
            continue
        target = folder / mount["name"]
        target.mkdir()
        for name, text in got(sandbox, "configmap", sources[mount["name"]])["data"].items():
            (target / name).write_text(text)
        path = f"{mount['mountPath']}/"
        arguments = [each.replace(path, f"{target}/") for each in arguments]
    own = token_of(spec["serviceAccountName"], sandbox.kubeconfig, namespace="acme")
    kubeconfig = kubeconfig_of(own, sandbox, folder)
    arguments += ["--bind-address=127.0.0.1", f"--cert-dir={folder / 'certs'}"]
    for flag in ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig"):
        arguments.append(f"--{flag}={kubeconfig}")
    return [sys.executable, "-m", "moorage", *arguments]


@contextmanager
def running(command: list[str], folder: Path) -> Iterator[str]:
    """Run the scheduler on a free port; yield its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [each.replace("--secure-port=10259", f"--secure-port={port}") for each in command]
    env = {**os.environ, "POD_NAMESPACE": "acme", "POD_NAME": "acme-moorage-0"}
    with (
        (folder / "log").open("w") as log,
        subprocess.Popen(command, env=env, stderr=log) as process,
    ):
        try:
            yield f"https://127.0.0.1:{port}"
        finally:
            process.terminate()


async def as_caller(
    sandbox: Sandbox, request: web.Request, method: str, path: str, body: bytes = b""
) -> Answer:
    """Send a call to the sandbox with the token of a request."""
    access = find_access(str(sandbox.kubeconfig), clock=SystemClock())
    token = request.headers.get("Authorization", "").removeprefix("Bearer ")
    credentials = FixedCredentials(Credential((bearer(token),)))
    transport = HttpTransport(msgspec.structs.replace(access, credentials=credentials))
    query = tuple(request.query.items()) if method == "GET" else ()
    try:
        return await transport.request(Call(method, path, query=query, body=body or None))
    finally:
        await transport.close()


async def may_tunnel(sandbox: Sandbox, request: web.Request) -> bool:
    """Whether a caller has both rights that servers ask for before they open a tunnel."""
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    for verb in ("get", "create"):
        asked = {"namespace": request.match_info["namespace"], "resource": "pods", "verb": verb}
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {**asked, "subresource": "portforward"}},
        }
        answer = await as_caller(sandbox, request, "POST", path, json.dumps(review).encode())
        if answer.status != 201 or not json.loads(answer.body)["status"]["allowed"]:
            return False
    return True


@contextmanager
def tunnelling(sandbox: Sandbox, port: int) -> Iterator[str]:
    """Serve the Leases of a sandbox, and tunnels to a port of this machine; yield the address.

    The sandbox decides by the caller's token who may read a Lease and who may open a tunnel.
    """

    async def leases(request: web.Request) -> web.StreamResponse:
        answer = await as_caller(sandbox, request, "GET", request.path)
        return web.Response(status=answer.status, body=answer.body, content_type="application/json")

    async def tunnel(request: web.Request) -> web.StreamResponse:
        if not await may_tunnel(sandbox, request):
            return web.Response(status=403)
        if request.match_info["name"] != "acme-moorage-0":
            return web.Response(status=404)
        return await port_forward(request, lambda asked: asked if asked == port else None)

    loop = asyncio.new_event_loop()
    app = web.Application()
    app.router.add_get("/apis/coordination.k8s.io/v1/leases", leases)
    app.router.add_get("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}", leases)
    app.router.add_get("/api/v1/namespaces/{namespace}/pods/{name}/portforward", tunnel)
    runner = web.AppRunner(app, shutdown_timeout=1)
    loop.run_until_complete(runner.setup())
    loop.run_until_complete(web.TCPSite(runner, "127.0.0.1", 0).start())
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def kubeconfig_for(server: str, token: str, folder: Path) -> Path:
    """Write a kubeconfig of a caller with a token."""
    folder.mkdir(exist_ok=True)
    path = folder / "caller"
    user = {"name": "u", "user": {"token": token}}
    cluster = {"name": "c", "cluster": {"server": server}}
    context = {"name": "x", "context": {"cluster": "c", "user": "u"}}
    whole = {"clusters": [cluster], "users": [user], "contexts": [context], "current-context": "x"}
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "Config", **whole}))
    return path


def asked_by_lease(
    server: str, token: str, folder: Path, *words: str
) -> subprocess.CompletedProcess[str]:
    """Ask the holder of the release's Lease."""
    path = kubeconfig_for(server, token, folder)
    words += ("--kubeconfig", str(path), "--lease", "acme/acme-moorage")
    return subprocess.run(
        [sys.executable, "-m", "moorage", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def shown_by_lease(server: str, token: str, folder: Path) -> dict[str, Any]:
    """Open the page of the release on this machine, and return what it shows."""
    path = kubeconfig_for(server, token, folder)
    words = ["dashboard", "--kubeconfig", str(path), "--lease", "acme/acme-moorage"]
    command = [sys.executable, "-m", "moorage", *words, "--address", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            link = process.stdout.readline().split()[2]
            opener = build_opener(HTTPCookieProcessor())
            opener.open(link, timeout=20).read()
            page = opener.open(f"{link.partition('/login')[0]}/page/v1/state", timeout=20)
            shown: dict[str, Any] = json.loads(page.read())
        finally:
            process.terminate()
    return shown


@contextmanager
def page_of_release(sandbox: Sandbox, server: str, folder: Path) -> Iterator[str]:
    """Run the page with the arguments of its container, and no rights; yield its address."""
    spec = got(sandbox, "deployment", "acme-moorage-page")["spec"]["template"]["spec"]
    (container,) = spec["containers"]
    arguments = [each for each in container["args"] if not each.startswith("--address=")]
    path = kubeconfig_for(server, "", folder)
    command = [sys.executable, "-m", "moorage", *arguments, "--kubeconfig", str(path)]
    command += ["--address", "127.0.0.1:0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().split()[2].rstrip(",")
        finally:
            process.terminate()


def seen_by(page: str, token: str) -> dict[str, Any]:
    """Log in with a token, and return what the page shows then."""
    opener = build_opener(HTTPCookieProcessor())
    form = urlencode({"token": token}).encode()
    opener.open(Request(f"{page}/login", form, {"Origin": page}), timeout=20).read()
    shown: dict[str, Any] = json.loads(opener.open(f"{page}/page/v1/state", timeout=20).read())
    return shown


def test_a_release_places_decides_and_answers(
    sandbox: Sandbox, release: list[str], tmp_path: Path
) -> None:
    with running(command_of(sandbox, tmp_path), tmp_path) as address:
        # The test's pod is one that only this scheduler places.
        tested = helm("test", "acme", *release, "--timeout", "90s")
        assert tested.returncode == 0, tested.stdout + tested.stderr
        assert "Phase:          Succeeded" in tested.stdout

        free = got(sandbox, "nodes")["items"][0]["status"]["allocatable"]["cpu"]
        sandbox.apply(pod("filler", "default-scheduler", str(int(free) - 1)))
        sandbox.wait_settled()
        sandbox.apply(pod("small", "acme", "100m"))
        clock = SystemClock()
        end = clock.monotonic_ns() + 60 * 10**9
        message = ""
        while "cpu is free" not in message and clock.monotonic_ns() < end:
            conditions = got(sandbox, "pod", "small")["status"].get("conditions", [])
            message = " ".join(each.get("message", "") for each in conditions)
        assert "less than 25 % of the cpu is free" in message

        trusting = tmp_path / "certs" / "kube-scheduler.crt"
        question = f"{address}/moorage/v1/queue"
        reader, stranger = (
            token_of(name, sandbox.kubeconfig, namespace="acme") for name in ("reader", "stranger")
        )
        status, text = read(question, trusting=trusting, token=reader)
        assert (status, "small" in text) == (200, True)
        assert read(question, trusting=trusting, token=stranger)[0] == 403

        port = urlsplit(address).port
        assert port is not None
        with tunnelling(sandbox, port) as server:
            waiting = ("queue", "--by", "none")
            explaining = ("explain", "pod", "small", "-n", "acme")
            attempting = (*explaining, "--attempt", "1")
            trying = ("what-if", "--delete", "pod/small", "-n", "acme")
            counting = ("capacity", "--like", "pod/small", "-n", "acme")
            for words in (waiting, explaining, attempting, trying, counting):
                answered = asked_by_lease(server, reader, tmp_path, *words)
                assert answered.returncode == 0, answered.stderr
                assert "small" in answered.stdout, words
            where = "asking the pod acme/acme-moorage-0, which holds the Lease acme/acme-moorage"
            assert where in answered.stderr
            shown = shown_by_lease(server, reader, tmp_path)
            assert [each["name"] for each in shown["pods"].values()] == ["small"]
            refused = asked_by_lease(server, stranger, tmp_path, *waiting)
            assert refused.returncode == 1
            assert "is forbidden" in refused.stderr
            assert 'cannot get resource "leases"' in refused.stderr
            with page_of_release(sandbox, server, tmp_path) as page:
                shown = seen_by(page, reader)
                assert [each["name"] for each in shown["pods"].values()] == ["small"]
                for token in (stranger, "nonsense"):
                    with pytest.raises(HTTPError, match="401") as refusal:
                        seen_by(page, token)
                    assert "The API server refuses this token" in refusal.value.read().decode()
    log = (tmp_path / "log").read_text()
    assert '] "Scheduling" ' in log
    assert '] "Requested to terminate, exiting"' in log


def test_a_plugin_that_cannot_be_loaded_keeps_the_container_from_starting(
    sandbox: Sandbox, release: list[str], tmp_path: Path
) -> None:
    words = ["upgrade", "acme", str(CHART), *release, "--reset-then-reuse-values"]
    broken = tmp_path / "broken.py"
    broken.write_text("raise LookupError('no racks')\n")
    done = helm(*words, "--set-file", rf"plugins.files.headroom\.py={broken}")
    assert done.returncode == 0, done.stderr
    ended = subprocess.run(
        command_of(sandbox, tmp_path), capture_output=True, text=True, timeout=60, check=False
    )
    # It ends before it serves anything, so no replica becomes ready.
    assert ended.returncode == 2
    assert "LookupError: no racks" in ended.stderr
