"""Completion of kinds, names, namespaces, contexts and shapes, as a shell asks for it.

Left out: the scripts that shells load (``tests/cli/test_commands.py``).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from click.shell_completion import ShellComplete
from click.testing import CliRunner

from moorage.cli.main import main
from sandbox.tests.sandbox.process import Up
from tests.cli.conftest import Type

POD = """apiVersion: v1
kind: Pod
metadata: {name: NAME}
spec: {containers: [{name: a, image: b}]}
"""


def completed(*words: str) -> list[str]:
    *args, incomplete = words
    shell = ShellComplete(main, {}, "moorage", "_MOORAGE_COMPLETE")
    return [item.value for item in shell.get_completions(list(args), incomplete)]


@pytest.fixture
def pods(typed: Type) -> None:
    """Create two pods in the sandbox."""
    for name in ("tab-one", "tab-two"):
        Path(f"{name}.yaml").write_text(POD.replace("NAME", name))
        assert typed("apply", "-f", f"{name}.yaml").exit_code == 0


@pytest.mark.usefixtures("pods")
@pytest.mark.parametrize(
    ("words", "found"),
    [
        pytest.param(["get", "pods", "tab-"], ["tab-one", "tab-two"], id="names after a kind"),
        pytest.param(["get", "po", "tab-t"], ["tab-two"], id="names after a short name"),
        pytest.param(["describe", "pod", "tab-o"], ["tab-one"], id="names of a pod to describe"),
        pytest.param(["delete", "pod/tab-t"], ["pod/tab-two"], id="kind and name in one word"),
        pytest.param(["get", "pods", "-n", "kube-s"], ["kube-system"], id="namespaces"),
        pytest.param(["get", "pods", "-n", "kube-system", "tab-"], [], id="another namespace"),
        pytest.param(["get", "persistentvolumec"], ["persistentvolumeclaims"], id="kinds"),
        pytest.param(["get", "nonsense", "a"], [], id="a kind that is not served"),
    ],
)
def test_names_are_completed_from_the_server(words: list[str], found: list[str]) -> None:
    assert completed(*words) == found


@pytest.mark.parametrize(
    ("words", "found"),
    [
        pytest.param(["up", "--shape", "p4"], ["p4d.24xlarge"], id="of up"),
        pytest.param(["nodes", "--shape", "p4"], ["p4d.24xlarge"], id="of nodes"),
        pytest.param(["scale", "nodes", "3", "--shape", "p4"], ["p4d.24xlarge"], id="of scale"),
        pytest.param(
            ["up", "--shape", "count=2,p4"], ["count=2,p4d.24xlarge"], id="in a later part"
        ),
        pytest.param(["up", "--shape", "cpu=4"], [], id="no instance type"),
    ],
)
def test_instance_types_are_completed(words: list[str], found: list[str]) -> None:
    assert completed(*words) == found


def test_contexts_are_completed_from_the_kubeconfig(sandbox: Up, bare: Type) -> None:
    assert completed("get", "--kubeconfig", str(sandbox.kubeconfig), "--context", "") == ["moorage"]


@pytest.mark.parametrize(
    "words",
    [
        pytest.param(["get", "pods", ""], id="no kubeconfig"),
        pytest.param(["get", "--kubeconfig", "broken", "pods", ""], id="a broken kubeconfig"),
        pytest.param(["get", "--kubeconfig", "broken", "--context", ""], id="contexts of it"),
        pytest.param(["get", "--kubeconfig", "away", "pods", ""], id="a server that is away"),
    ],
)
def test_a_server_that_does_not_answer_completes_nothing_and_says_nothing(
    bare: Type, words: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    Path("broken").write_text("[")
    Path("away").write_text(
        "{clusters: [{name: a, cluster: {server: 'http://127.0.0.1:9'}}], "
        "contexts: [{name: a, context: {cluster: a}}], current-context: a}"
    )
    assert completed(*words) == []
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_has_a_script(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell])
    assert (result.exit_code, "_MOORAGE_COMPLETE" in result.stdout) == (0, True)
