"""What goes wrong before any server is asked: each error says what to do, and ends with 2."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Type

CONFIG = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"


def write(path: str, text: str) -> None:
    Path(path).write_text(text)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        pytest.param(
            ("get", "pods"),
            "no API server to talk to: there is no {home}/.kube/config and this is not a pod; "
            "give --kubeconfig FILE",
            id="no cluster anywhere",
        ),
        pytest.param(
            ("get", "pods", "--kubeconfig", "nosuch"),
            "nosuch: ",
            id="a kubeconfig that is not there",
        ),
        pytest.param(
            ("apply", "-f", "nosuch.yaml"),
            "there is no nosuch.yaml; give a file, a directory, or - for standard input",
            id="a manifest that is not there",
        ),
        pytest.param(
            ("apply", "-f", "empty"),
            "empty holds no .yaml, .yml or .json files",
            id="a directory without manifests",
        ),
        pytest.param(("apply", "-f", "torn.yaml"), "torn.yaml: not YAML: ", id="torn YAML"),
        pytest.param(
            ("apply", "-f", "words.yaml"),
            "words.yaml: document 1: not a Kubernetes object but str 'hello'",
            id="YAML that is no object",
        ),
        pytest.param(
            ("apply", "-f", "kindless.yaml"),
            "kindless.yaml: document 1: no kind; every object needs apiVersion, kind and metadata",
            id="an object without kind",
        ),
        pytest.param(
            ("get", "pod", "a", "-A"),
            "an object has one namespace: name it with -n, without -A",
            id="a name in every namespace",
        ),
        pytest.param(
            ("get", "pod/a", "b"),
            "write KIND/NAME for every object, or KIND NAME NAME",
            id="two ways to name at once",
        ),
        pytest.param(
            ("delete", "pods"),
            "which pods? name them, or take them with -l LABELS or --all",
            id="delete without saying which",
        ),
        pytest.param(
            ("up", "--config", "nosuch"),
            "nosuch: cannot read the file: No such file or directory",
            id="a configuration that is not there",
        ),
        pytest.param(
            ("up", "--config", "elect.yaml"),
            "elect.yaml: leaderElection.resourceLock: ",
            id="leader election",
        ),
        pytest.param(
            ("run", "--config", "elect.yaml"),
            "elect.yaml: leaderElection.resourceLock: ",
            id="leader election of a run",
        ),
        pytest.param(
            ("up", "--nodes-from", "nosuch"),
            "nosuch: cannot read the nodes: No such file or directory",
            id="nodes that are not there",
        ),
        pytest.param(
            ("up", "--kubeconfig-out", "torn.yaml/kubeconfig", "--empty", "--nodes", "0"),
            "cannot write the kubeconfig to {home}/torn.yaml/kubeconfig: ",
            id="a kubeconfig that cannot be written",
        ),
        pytest.param(("conformance", "nosuch"), "nosuch", id="recordings that are not there"),
    ],
)
def test_bad_input_ends_with_2_and_says_what_to_do(
    bare: Type, tmp_path: Path, words: tuple[str, ...], error: str
) -> None:
    Path("empty").mkdir()
    write("torn.yaml", "a: [1,\n")
    write("words.yaml", "hello")
    write("kindless.yaml", "apiVersion: v1\nmetadata: {name: x}\n")
    write("elect.yaml", f"{CONFIG}leaderElection: {{resourceLock: x}}\n")
    result = bare(*words)
    assert result.stderr.startswith(f"error: {error.format(home=tmp_path)}")
    assert (result.exit_code, result.stdout) == (2, "")


@pytest.mark.parametrize(
    ("words", "error"),
    [
        pytest.param(("up", "--nodes", "-1"), "invalid value for '--nodes'", id="negative nodes"),
        pytest.param(("up", "--port", "70000"), "invalid value for '--port'", id="no such port"),
        *(
            pytest.param(
                ("up", "--webhook", each),
                f"--webhook {each}: name a Service and where its program listens",
                id=f"the webhook {each}",
            )
            for each in ("a/b", "b=h:1", "a/b=h", "a/b=h:0", "a/b=h:65536", "a/b/c=h:1", "a/b=[]:1")
        ),
        pytest.param(
            ("up", "--shape", "cpu=1", "--nodes-from", "nodes.yaml"),
            "--shape and --nodes-from exclude each other; keep one",
            id="shapes of nodes that are written out, for up",
        ),
        pytest.param(
            ("nodes", "--shape", "cpu=1", "--nodes-from", "nodes.yaml"),
            "--shape and --nodes-from exclude each other; keep one",
            id="shapes of nodes that are written out, for nodes",
        ),
        pytest.param(
            ("up", "--nodes", "1", "--nodes-from", "x"),
            "--nodes and --nodes-from exclude each other; keep one",
            id="two sources of nodes",
        ),
        pytest.param(
            ("up", "--no-scheduler", "--exit-when-settled"),
            "--exit-when-settled waits for a scheduler, and --no-scheduler starts none",
            id="waiting for a scheduler that is not started",
        ),
        pytest.param(
            ("nodes", "--count", "1", "--nodes-from", "x"),
            "--count and --nodes-from exclude each other; keep one",
            id="nodes by number and from a file",
        ),
        pytest.param(
            ("nodes",),
            "say how many nodes with --count, or which ones with --nodes-from",
            id="nodes without a number",
        ),
        pytest.param(("delete",), "say what to delete", id="delete without anything"),
        pytest.param(("fly",), "no such command 'fly'. Choose from: ", id="an unknown command"),
        pytest.param(
            ("explian",),
            "no such command 'explian'. Did you mean explain? See ",
            id="a mistyped command",
        ),
        pytest.param(
            ("Get", "pods"),
            "no such command 'Get'. Did you mean get? See ",
            id="a command in capitals",
        ),
        pytest.param(
            ("scale", "atuo"),
            "no such command 'atuo'. Did you mean auto? See ",
            id="a mistyped command of a group",
        ),
        pytest.param(
            ("nodes", "shaeps"),
            "no such command 'shaeps'. Did you mean shapes? See ",
            id="a mistyped command of a group that works without one",
        ),
        pytest.param(
            ("config", "fly"),
            "no such command 'fly'. Choose from: ",
            id="an unknown command of a group",
        ),
        pytest.param(
            ("explain", "node", "n", "m"),
            "name one object, as TYPE/NAME or TYPE NAME, or select pods with -l or -A",
            id="two objects to explain",
        ),
    ],
)
def test_wrong_usage_ends_with_2(bare: Type, words: tuple[str, ...], error: str) -> None:
    result = bare(*words)
    assert (result.exit_code, result.stdout) == (2, "")
    assert error in result.stderr


@pytest.mark.parametrize(
    "command",
    ["", "up", "run", "nodes", "apply", "get", "describe", "delete", "conformance", "bench basic"],
)
def test_help_teaches_by_examples(bare: Type, command: str) -> None:
    words = command.split()
    result = bare(*words, "--help")
    assert result.exit_code == 0
    assert f"  moorage {command}" in result.stdout


def test_exit_codes_are_told_by_help(bare: Type) -> None:
    text = bare("--help").stdout
    for code in ("0", "1", "2", "130"):
        assert re.search(rf"^ +{code} +\w", text, re.MULTILINE)


def test_help_shows_each_command_with_its_whole_summary(bare: Type) -> None:
    commands = bare("--help").stdout.partition("Commands:")[2]
    listed = commands.partition("First steps:")[0]
    assert "..." not in listed
    assert "Show which sandboxes run in this directory, and how their pods are." in " ".join(
        listed.split()
    )


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_name_the_variable(bare: Type, shell: str) -> None:
    assert "_MOORAGE_COMPLETE" in bare("completion", shell).stdout
