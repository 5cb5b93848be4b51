"""``moorage queue`` typed: against a sandbox, and where there is no scheduler to ask."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml

from moorage.base.running_sandboxes import find
from tests.cli.conftest import Type

PODS = """
apiVersion: v1
kind: Pod
metadata: {name: giant, namespace: queue-test}
spec:
  containers: [{name: c, image: x, resources: {requests: {cpu: "64"}}}]
---
apiVersion: v1
kind: Pod
metadata: {name: held, namespace: queue-test}
spec:
  schedulingGates: [{name: quota}]
  containers: [{name: c, image: x}]
"""
NAMESPACE = "{apiVersion: v1, kind: Namespace, metadata: {name: queue-test}}"


@pytest.mark.slow
def test_the_scheduler_of_a_sandbox_is_found_and_asked(typed: Type) -> None:
    assert typed("apply", "-f", "-", stdin=NAMESPACE).exit_code == 0
    assert typed("apply", "-f", "-", stdin=PODS).exit_code == 0
    typed("wait", "--for=settled", "--timeout", "60")
    result = typed("queue", "-n", "queue-test")
    assert result.exit_code == 0, result.output
    heading, *rows = result.stdout.splitlines()
    assert heading.split() == ["PODS", "OWNER", "QUEUE", "OLDEST", "REASON"]
    assert [(*row.split()[:3], row.split()[-1]) for row in rows[::2]] == [
        ("1", "queue-test/pod/giant", "unschedulable", "InsufficientCPU"),
        ("1", "queue-test/pod/held", "gated", "SchedulingGated"),
    ]
    assert max(map(len, result.stdout.splitlines())) <= 80
    whole = json.loads(typed("queue", "-n", "queue-test", "-o", "json").stdout)
    assert (whole["kind"], whole["apiVersion"]) == ("SchedulingQueue", "moorage.dev/v1")
    assert [each["name"] for each in whole["pods"]] == ["giant", "held"]
    same = yaml.safe_load(typed("queue", "-n", "queue-test", "-o", "yaml").stdout)
    assert [each["queue"] for each in same["pods"]] == ["unschedulable", "gated"]
    assert typed("queue", "-n", "queue-test", "-o", "name").stdout == "pod/giant\npod/held\n"


@pytest.mark.slow
def test_an_address_needs_a_certificate_to_trust(typed: Type) -> None:
    record = find(Path(os.environ["KUBECONFIG"]))
    assert record is not None
    address = record.health
    refused = typed("queue", "--scheduler", address)
    assert refused.exit_code == 1
    assert "CERTIFICATE_VERIFY_FAILED" in refused.stderr
    assert "give --certificate-authority FILE, or --insecure-skip-tls-verify" in refused.stderr
    assert typed("queue", "--scheduler", address, "--insecure-skip-tls-verify").exit_code == 0


@pytest.mark.slow
def test_a_sandbox_has_no_proxy_to_pods(typed: Type) -> None:
    result = typed("queue", "--scheduler", "kube-system/moorage-0")
    assert result.exit_code == 1
    assert "moorage-0" in result.stderr


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        pytest.param(
            [],
            1,
            "no scheduler to ask: no API server to talk to: there is no ",
            id="no sandbox",
        ),
        pytest.param(
            ["--scheduler", "moorage-0"],
            2,
            "--scheduler moorage-0: write https://ADDRESS:PORT or NAMESPACE/POD[:PORT]",
            id="neither an address nor a pod",
        ),
        pytest.param(
            ["--token", "x"],
            2,
            "--token, --certificate-authority and --insecure-skip-tls-verify belong to --scheduler",
            id="a token for no address",
        ),
        pytest.param(
            ["--scheduler", "kube-system/moorage-0", "--token", "x"],
            2,
            "belong to a --scheduler given by its address: the kubeconfig says who asks for "
            "kube-system/moorage-0",
            id="a token for a pod",
        ),
        pytest.param(
            ["--scheduler", "https://127.0.0.1:1", "--certificate-authority", "nosuch"],
            2,
            "--certificate-authority nosuch: No such file or directory",
            id="no such file",
        ),
        pytest.param(
            ["--scheduler", "https://127.0.0.1:1"],
            1,
            "the scheduler at https://127.0.0.1:1 does not answer",
            id="nothing listens there",
        ),
    ],
)
def test_an_unanswered_question_is_told(bare: Type, words, code, told) -> None:
    result = bare("queue", *words)
    assert (result.exit_code, told in result.stderr) == (code, True), result.stderr
