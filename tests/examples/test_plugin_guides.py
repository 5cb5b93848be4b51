"""What the tutorial and the how-to about plugins print is typed here, and has to be true."""

from __future__ import annotations

import os
import re
import runpy
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from moorage.config.load import parse_config
from moorage.config.merge import expand_profiles
from moorage.framework.registry import METHODS
from moorage_sandbox.testing.builders import node, pod
from moorage_sandbox.testing.plugins import StillCluster, with_plugins
from sandbox.tests.sandbox.process import Up

ROOT = Path(__file__).resolve().parents[2]
ZONE = "topology.kubernetes.io/zone"


def blocks(page: str, language: str) -> list[str]:
    """The fenced blocks of a page that are in a language, in order."""
    text = (ROOT / "docs" / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


def typed(block: str, directory: Path) -> str:
    """Type the one command of a console block; return its output."""
    program, *words = shlex.split(block.removeprefix("$ "))
    assert program == "moorage"
    return subprocess.run(
        [sys.executable, "-m", "moorage.cli.main", *words],
        cwd=directory,
        env={**os.environ, "KUBECONFIG": str(directory / ".moorage" / "kubeconfig")},
        capture_output=True,
        text=True,
        check=False,  # a pod may not be there yet; what has to be in the output is asserted
    ).stdout


def arguments(block: str) -> list[str]:
    """What follows ``moorage up`` in a console block."""
    program, command, *words = shlex.split(block.removeprefix("$ "))
    assert (program, command) == ("moorage", "up")
    return words


def test_the_tutorial_is_ten_lines() -> None:
    first, second = blocks("tutorial/first-plugin.md", "python")
    assert len(first.splitlines()) <= 10
    assert len(second.splitlines()) <= 10


@pytest.mark.slow
def test_the_tutorials_filter_decides_in_a_running_sandbox(tmp_path: Path) -> None:
    filter_, _ = blocks("tutorial/first-plugin.md", "python")
    start, list_pods, describe, _ = blocks("tutorial/first-plugin.md", "console")
    taken, refused = blocks("tutorial/first-plugin.md", "text")
    (tmp_path / "first_plugin.py").write_text(filter_)
    with Up(tmp_path, *arguments(start)) as up:
        up.until(taken.strip())
        # Looked at until it is so: the pods have only just been created.
        looks = (typed(describe, tmp_path) for _ in range(20))
        assert any(refused.strip() in each for each in looks)
        rows = [line.split() for line in typed(list_pods, tmp_path).splitlines()[1:]]
        pods = {row[0]: row[6] for row in rows}
        assert len(pods) == 30
        assert not {"node-01", "node-04"} & set(pods.values())
        assert "node-02" in pods.values()


def test_the_tutorials_score_decides(tmp_path: Path) -> None:
    *_, start = blocks("tutorial/first-plugin.md", "console")
    (tmp_path / "first_plugin.py").write_text(
        "\n\n".join(blocks("tutorial/first-plugin.md", "python"))
    )
    *_, option, reference = arguments(start)
    assert option == "--plugin"
    nodes = [node(f"node-0{i}", labels={ZONE: "abc"[(i - 1) % 3]}) for i in range(1, 7)]
    cluster = StillCluster(nodes, plugins=[f"{tmp_path}/{reference}"])
    assert cluster.node_of(pod()) == "node-02"
    assert cluster.node_of(pod(node_selector={ZONE: "a"})) == "node-01"


def test_the_tutorials_broken_filter_says_what_the_tutorial_says(tmp_path: Path) -> None:
    filter_, _ = blocks("tutorial/first-plugin.md", "python")
    broken = re.sub(r"return .*", 'raise RuntimeError("oops")', filter_)
    (tmp_path / "first_plugin.py").write_text(broken)
    cluster = StillCluster(
        [node("node-01", labels={ZONE: "a"})],
        plugins=[f"{tmp_path}/first_plugin.py:zone_a_rests"],
    )
    message = cluster.message(pod())
    assert f"`{message}`" in (ROOT / "docs" / "tutorial" / "first-plugin.md").read_text()


@pytest.mark.parametrize(("index", "harness"), [(0, "StillCluster"), (1, "VirtualCluster")])
def test_the_tests_in_the_how_to_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: int, harness: str
) -> None:
    sources = blocks("how-to/write-a-plugin.md", "python")
    assert (len(sources), harness in sources[index]) == (2, True)
    (tmp_path / "snippet.py").write_text(sources[index])
    monkeypatch.chdir(ROOT)
    assert harness in runpy.run_path(str(tmp_path / "snippet.py"))


def test_the_how_tos_configuration_enables_the_plugin() -> None:
    (text,) = blocks("how-to/write-a-plugin.md", "yaml")
    config, registry = with_plugins(
        [f"{ROOT}/examples/plugins/keep_headroom.py:KeepHeadroom"], config=parse_config(text)
    )
    (spec,) = expand_profiles(config.scheduler, registry)
    assert spec.points["filter"][-1] == "KeepHeadroom"
    assert spec.plugin_args["KeepHeadroom"].cpu_percent == 25


def test_the_reference_has_every_method() -> None:
    text = (ROOT / "docs" / "reference" / "plugin-points.md").read_text()
    assert re.findall(r"^### (\w+)$", text, flags=re.MULTILINE) == list(METHODS)
