"""One sandbox for the tests of commands, and a way to type them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from moorage.base.running_sandboxes import find
from moorage.cli.main import main
from sandbox.tests.sandbox.process import Up

Type = Callable[..., Result]


@pytest.fixture(scope="session")
def sandbox(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """Return a running cluster of two nodes, with a scheduler that can be asked."""
    with Up(tmp_path_factory.mktemp("up"), "--nodes", "2", "--empty", "--seed", "1") as up:
        up.started()
        # The scheduler's address is recorded soon after the start; a test's timeout is the bound.
        while (record := find(up.kubeconfig)) is None or not record.health:
            pass
        yield up


def settle(sandbox: Up) -> None:
    """Wait until every pod of the sandbox is bound, or its condition says why not."""
    words = ("wait", "--for=settled", "--timeout", "60", "--kubeconfig", str(sandbox.kubeconfig))
    subprocess.run(
        [sys.executable, "-m", "moorage.cli.main", *words], check=True, capture_output=True
    )


def errors(stderr: str) -> str:
    """Return standard error without the note that says which cluster is spoken to."""
    lines = stderr.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith("note: cluster: "))


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Type:
    """Type a command where there is no cluster to be found."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def type_(*words: str, stdin: str | None = None) -> Result:
        return CliRunner().invoke(main, list(words), input=stdin)

    return type_


@pytest.fixture
def typed(bare: Type, sandbox: Up, monkeypatch: pytest.MonkeyPatch) -> Type:
    """Type a command that finds the sandbox."""
    monkeypatch.setenv("KUBECONFIG", str(sandbox.kubeconfig))
    return bare
