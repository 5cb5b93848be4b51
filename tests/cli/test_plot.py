"""``moorage plot`` and ``moorage bench packing`` as they are typed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from moorage_sandbox.testing.builders import node_manifest, pod_manifest
from tests.cli.conftest import Type

PACKING = Path(__file__).resolve().parents[2] / "examples/profiles/packing.yaml"


def state(path: Path, *items: dict[str, Any]) -> str:
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(items)}))
    return str(path)


def test_two_dumps_are_drawn_beside_each_other(bare: Type, tmp_path: Path) -> None:
    node = {"apiVersion": "v1", "kind": "Node", **node_manifest("n1", cpu="2")}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        **pod_manifest("p", cpu="1", node_name="n1", labels={"app": "web"}),
    }
    before = state(tmp_path / "before.json", node)
    after = state(tmp_path / "after.json", node, pod)
    words = ["plot", before, after, "--to", "x.svg", "-r", "cpu", "--color-by", "label:app"]
    result = bare(*words)
    assert (result.exit_code, result.stdout) == (
        0,
        "before cpu: 0 % in use, 1 of 1 nodes untouched\n"
        "after cpu: 50 % in use, 0 of 1 nodes untouched\n",
    )
    assert ">web<" in Path("x.svg").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(
            ["--to", "x.svg", "--color-by", "mood"],
            "error: --color-by mood: say namespace, scheduler, priority or label:KEY\n",
            id="unknown colouring",
        ),
        pytest.param(
            ["--to", "x.bmp"],
            "error: x.bmp: the suffix says the format, one of .svg, .png, .pdf\n",
            id="unknown format",
        ),
        pytest.param(
            ["empty.json", "--to", "x.svg"],
            "error: there are no nodes in empty.json; nothing to draw\n",
            id="a state without nodes",
        ),
    ],
)
def test_bad_input(bare: Type, tmp_path: Path, words: list[str], message: str) -> None:
    pod = {"apiVersion": "v1", "kind": "Pod", **pod_manifest("p")}
    state(tmp_path / "empty.json", pod)
    result = bare("plot", *words)
    assert (result.exit_code, result.stderr) == (2, message)


@pytest.mark.slow
def test_the_cluster_of_the_kubeconfig(typed: Type) -> None:
    result = typed("plot", "--to", "x.png", "-r", "cpu")
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("cpu: ")
    assert Path("x.png").stat().st_size > 0


def test_bench_packing_prints_a_line_for_each_profile(bare: Type) -> None:
    result = bare("bench", "packing", str(PACKING), "--nodes", "6", "-o", "json", "--plot", "x.svg")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert [each["profile"] for each in found] == ["gpu-bin-packing", "service-spreading"]
    assert found[0]["wholeNodesFree"] > found[1]["wholeNodesFree"]
    assert Path("x.svg").stat().st_size > 0
    table = bare("bench", "packing", str(PACKING), "--nodes", "6").stdout.splitlines()
    assert [line.split()[0] for line in table] == ["PROFILE", *(each["profile"] for each in found)]
