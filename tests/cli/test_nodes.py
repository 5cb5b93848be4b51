"""``moorage nodes``: the list of shapes, and how shapes are said.

Left out: nodes that are played for a server (``sandbox/tests/nodeagent``).
"""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

from moorage.cli.main import main


def typed(*words: str) -> str:
    return CliRunner().invoke(main, ["nodes", *words]).output


def test_the_list_has_what_a_type_has() -> None:
    lines = [" ".join(line.split()) for line in typed("shapes").splitlines()]
    assert lines[0] == "NAME CPU MEMORY GPU CLOUD"
    assert "p4d.24xlarge 96 1152Gi 8 AWS" in lines
    assert "Standard_D4s_v5 4 16Gi 0 Azure" in lines


def test_the_wide_list_names_the_pages() -> None:
    lines = [" ".join(line.split()) for line in typed("shapes", "-o", "wide").splitlines()]
    assert lines[0] == "NAME CPU MEMORY GPU CLOUD PAGE"
    assert "p4d.24xlarge 96 1152Gi 8 AWS Amazon EC2 P4 Instances" in lines


def test_programs_get_the_same_list() -> None:
    found = {each["name"]: each for each in json.loads(typed("shapes", "-o", "json"))}
    assert found["p4d.24xlarge"] == {
        "name": "p4d.24xlarge",
        "cloud": "AWS",
        "resources": {"cpu": "96", "memory": "1152Gi", "nvidia.com/gpu": "8"},
        "page": "Amazon EC2 P4 Instances",
    }


@pytest.mark.parametrize(
    ("words", "message"),
    [
        pytest.param(
            ["--shape", "cpu=96,memory=1Ti,gpu=8"],
            "say how many nodes in all, or give every --shape a count=N",
            id="no number of nodes",
        ),
        pytest.param(
            ["--shape", "p4d.24xlarge,count=2", "--shape", "cpu=4,count=1", "--count", "2"],
            "the shapes count 3 nodes, and there should be 2",
            id="two shapes with more nodes than there should be",
        ),
        pytest.param(["--shape", "p4d,count=1"], "`moorage nodes shapes` lists all", id="bad type"),
        pytest.param(
            ["--shape", "p4d.24xlarge", "--nodes-from", "x"], "keep one", id="shape and file"
        ),
        pytest.param(["shape"], "no such command 'shape'", id="no such command"),
        pytest.param([], "say how many nodes with --count", id="nothing"),
        pytest.param(["--adopt", "a in"], "--adopt a in: ", id="a selector without its end"),
    ],
)
def test_bad_shapes_are_refused(words: list[str], message: str) -> None:
    assert message in typed(*words).replace("No such", "no such")
