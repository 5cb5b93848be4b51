"""A whole sandbox under --rbac: everything works as the users it is, and nobody else may."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.sandbox.process import Up


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
