"""The ClusterRole of questions holds exactly the rights that `kubectl moorage` needs to ask.

Proved both ways with the scheduler of a release: a caller with all rights is answered and learns
the Leases of other releases, and a caller without any one of them is refused something. Not
covered: a kubelet at the other end of the tunnel.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest

from moorage import Sandbox
from sandbox.tests.sandbox.test_scraping import token_of
from tests.deploy.chart import CHART, helm
from tests.deploy.test_release import command_of, got, kubeconfig_for, pod, running, tunnelling

pytestmark = [pytest.mark.slow, pytest.mark.kubectl, pytest.mark.timeout(400)]

Rules = list[dict[str, Any]]
RBAC = "rbac.authorization.k8s.io"


class QuestionRight(NamedTuple):
    """A verb on a resource or on paths."""

    verb: str
    what: str


Words = tuple[str, ...]
LEASE: Words = ("--lease", "acme/acme-moorage")
QUEUE: Words = ("queue", *LEASE)
TRY: Words = ("what-if", "--delete", "pod/waiting", "-n", "acme", *LEASE)
FIND: Words = ("queue",)
CHECKS: dict[QuestionRight, Words] = {
    QuestionRight("get", "/moorage/v1/*"): QUEUE,
    QuestionRight("post", "/moorage/v1/*"): TRY,
    QuestionRight("get", "leases"): QUEUE,
    QuestionRight("list", "leases"): FIND,
    QuestionRight("get", "pods/portforward"): QUEUE,
    QuestionRight("create", "pods/portforward"): QUEUE,
}
"""The command that needs a right."""


def rights_of(rules: Rules) -> list[QuestionRight]:
    """Return the rights of some rules, in their order."""
    return [
        QuestionRight(verb, what)
        for rule in rules
        for what in (*rule.get("nonResourceURLs", ()), *rule.get("resources", ()))
        for verb in rule["verbs"]
    ]


def rules_without(rules: Rules, taken: QuestionRight | None) -> Rules:
    """Return rules with one right less; each rule is about one resource, or about paths."""
    rest: Rules = []
    for rule in rules:
        (what,) = rule.get("nonResourceURLs") or rule["resources"]
        verbs = [verb for verb in rule["verbs"] if QuestionRight(verb, what) != taken]
        rest.append({**rule, "verbs": verbs})
    return [rule for rule in rest if rule["verbs"]]


def caller(name: str, rules: Rules) -> str:
    """Return a service account that views objects, and has a ClusterRole of these rules."""
    account = {"kind": "ServiceAccount", "name": name, "namespace": "acme"}
    metadata = {"name": name, "namespace": "acme"}
    version = f"{RBAC}/v1"
    items: Rules = [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata},
        {"apiVersion": version, "kind": "ClusterRole", "metadata": {"name": name}, "rules": rules},
    ]
    items += [
        {
            "apiVersion": version,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": f"{name}-{role}"},
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": role},
            "subjects": [account],
        }
        for role in (name, "view")
    ]
    return "\n---\n".join(map(json.dumps, items))


def is_answered(words: Words, kubeconfig: Path) -> bool:
    """Whether a question is answered, or (`FIND`) the Lease of the release is named."""
    done = subprocess.run(
        [sys.executable, "-m", "moorage", *words, "--kubeconfig", str(kubeconfig)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if words == FIND:
        assert done.returncode == 1, done.stdout
        return "moorage holds acme/acme-moorage" in done.stderr
    return done.returncode == 0


def test_asking_needs_exactly_the_rights_of_the_role(tmp_path: Path) -> None:
    with Sandbox(nodes=1, arguments=["--rbac"]) as sandbox:
        words: Words = ("install", "acme", str(CHART), "--kubeconfig", str(sandbox.kubeconfig))
        words += ("--namespace", "acme", "--create-namespace", "--set", "schedulerName=acme")
        done = helm(*words, "--set", "questions.clusterRole=true")
        assert done.returncode == 0, done.stderr
        rules: Rules = got(sandbox, "clusterrole", "acme-moorage-questions")["rules"]
        assert sorted(rights_of(rules)) == sorted(CHECKS)

        callers: dict[QuestionRight | None, str] = {None: "complete"}
        callers |= {right: f"without-{index}" for index, right in enumerate(CHECKS)}
        for right, name in callers.items():
            sandbox.apply(caller(name, rules_without(rules, right)))
        sandbox.apply(pod("waiting", "acme", "1000"))
        folder = tmp_path / "scheduler"
        folder.mkdir()
        with running(command_of(sandbox, folder), folder) as address:
            port = urlsplit(address).port
            assert port is not None
            with tunnelling(sandbox, port) as server:
                kubeconfigs = {
                    right: kubeconfig_for(
                        server,
                        token_of(name, sandbox.kubeconfig, namespace="acme"),
                        tmp_path / name,
                    )
                    for right, name in callers.items()
                }
                while not is_answered(QUEUE, kubeconfigs[None]):
                    pass  # no replica leads yet; the test's time is limited
                for right, words in CHECKS.items():
                    assert is_answered(words, kubeconfigs[None]), right
                    assert not is_answered(words, kubeconfigs[right]), right
