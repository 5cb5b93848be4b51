"""A kubeconfig that can be read but leads nowhere: told at once, with what to do."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from sandbox.tests.sandbox.process import Up
from tests.cli.conftest import Type, errors

Kubeconfig = dict[str, Any]
COMMANDS = [("get", "pods"), ("nodes", "--count", "1"), ("run",)]


def nobody_there(kubeconfig: Kubeconfig) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    kubeconfig["clusters"][0]["cluster"]["server"] = f"https://127.0.0.1:{port}"


def no_authority(kubeconfig: Kubeconfig) -> None:
    del kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"]


def wrong_token(kubeconfig: Kubeconfig) -> None:
    kubeconfig["users"][0]["user"] = {"token": "wrong"}


FAULTS = [
    (
        nobody_there,
        "; is the server running, and is its address in the kubeconfig right?\n",
        "nobody listens",
    ),
    (
        no_authority,
        "; check certificate-authority of the cluster in the kubeconfig\n",
        "unknown authority",
    ),
    (
        wrong_token,
        "error: Unauthorized: the server knows no such user; "
        "check the user's credentials in the kubeconfig\n",
        "wrong token",
    ),
]


@pytest.mark.parametrize(
    ("words", "spoil", "advice"),
    [
        pytest.param(words, spoil, advice, id=f"{fault}-{' '.join(words)}")
        for spoil, advice, fault in FAULTS
        for words in COMMANDS
        # The scheduler waits for a server that is not there (run/test_waiting_for_server.py).
        if (words, spoil) != (("run",), nobody_there)
    ],
)
def test_an_unusable_server_is_told_at_once(
    typed: Type,
    sandbox: Up,
    words: tuple[str, ...],
    spoil: Callable[[Kubeconfig], None],
    advice: str,
) -> None:
    kubeconfig = json.loads(sandbox.kubeconfig.read_text())
    spoil(kubeconfig)
    Path("spoilt").write_text(json.dumps(kubeconfig))
    result = typed(*words, "--kubeconfig", "spoilt")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.endswith(advice)
    assert errors(result.stderr).count("\n") == 1
