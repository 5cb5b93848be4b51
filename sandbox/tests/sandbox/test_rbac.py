"""A whole sandbox under --rbac: everything works as the users it is, and nobody else may."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from sandbox.tests.sandbox.process import Up


@pytest.mark.slow
def test_the_scheduler_places_and_the_nodes_run_pods_under_their_own_roles(tmp_path):
    with Up(tmp_path, "--rbac", "--nodes", "5", "-o", "json") as up:
        # One pod of the first thirty wants more than a node has; it waits, the others run.
        for _ in range(29):
            up.until('"state":"running"')
        scheduler = up.kubeconfig.with_name("kubeconfig-scheduler")
        if shutil.which("kubectl") is None:
            pytest.skip("there is no kubectl")

        def ask(*words: str) -> str:
            command = ["kubectl", "--kubeconfig", str(scheduler), *words]
            done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
            return (done.stdout + done.stderr).strip()

        assert "system:kube-scheduler" in ask("auth", "whoami")
        assert ask("auth", "can-i", "create", "pods", "--subresource=binding") == "yes"
        assert ask("auth", "can-i", "get", "secrets") == "no"
        assert "pods/binding" in ask("auth", "can-i", "--list")
        assert ask("get", "secrets") == (
            'Error from server (Forbidden): secrets is forbidden: User "system:kube-scheduler" '
            'cannot list resource "secrets" in API group "" in the namespace "default"'
        )
    assert not [line for line in up.output if "forbidden" in line.lower()]


@pytest.mark.slow
def test_the_port_of_the_scheduler_asks_who_calls(tmp_path):
    """Queue, decisions and questions name pods of all namespaces; strangers hear of none."""
    anyone = ssl.create_default_context()
    anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
    with Up(tmp_path, "--rbac", "--nodes", "1", "-o", "json") as up:
        up.until('"state":"running"')
        address = json.loads(up.kubeconfig.with_name("kubeconfig-sandbox.json").read_text())[
            "health"
        ]

        def status(path: str, body: bytes | None = None) -> int:
            call = urllib.request.Request(f"{address}{path}", data=body)
            try:
                with urllib.request.urlopen(call, context=anyone, timeout=30) as answer:
                    return int(answer.status)
            except urllib.error.HTTPError as error:
                return error.code

        assert status("/healthz") == 200
        assert [
            status(path) for path in ("/moorage/v1/queue", "/metrics", "/moorage/v1/decisions")
        ] == [403] * 3
        assert status("/moorage/v1/what-if", b"{}") == 403
        words = [sys.executable, "-m", "moorage", "queue", "--kubeconfig", str(up.kubeconfig)]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_an_answer_leaves_out_what_a_role_does_not_show(tmp_path):
    """A user of one namespace reads its own pods in the queue, and how many others there are."""
    if shutil.which("kubectl") is None:
        pytest.skip("there is no kubectl")
    with Up(tmp_path, "--rbac", "--nodes", "1", "-o", "json") as up:
        up.until('"state":"running"')

        def run(*words: str) -> str:
            command = ["kubectl", "--kubeconfig", str(up.kubeconfig), *words]
            done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=True)
            return done.stdout.strip()

        for space in ("mine", "theirs-ns"):
            run("create", "namespace", space)
            run("run", f"big-{space}", "-n", space, "--image=i", "--overrides", _BIG)
        run("create", "serviceaccount", "robot", "-n", "mine")
        run("create", "rolebinding", "r", "-n", "mine", "--clusterrole=view", "--user=jane")
        run("create", "rolebinding", "s", "-n", "mine", "--clusterrole=view", _ROBOT)
        run("create", "clusterrole", "asks", "--verb=get", "--non-resource-url=/moorage/v1/*")
        run("create", "clusterrolebinding", "asks", "--clusterrole=asks", _ROBOT)
        token = run("create", "token", "robot", "-n", "mine")
        record = json.loads(up.kubeconfig.with_name("kubeconfig-sandbox.json").read_text())
        words = [sys.executable, "-m", "moorage", "queue", "--scheduler", record["health"]]
        words += ["--token", token, "--insecure-skip-tls-verify", "-o", "json"]
        done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
        assert done.returncode == 0, done.stderr
        assert "big-mine" in done.stdout
        assert "theirs" not in done.stdout + done.stderr
        assert "of other namespaces" in done.stdout + done.stderr


_BIG = '{"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"900"}}}]}}'
_ROBOT = "--serviceaccount=mine:robot"
