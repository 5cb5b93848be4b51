"""Entry points of the installed distributions of moorage, read without `importlib.metadata`."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

from moorage.base.entry_points import entry_points, is_own_module, load

GROUP = "moorage.commands"
TEXT = """\
[console_scripts]
moorage = a:main

[moorage.commands]
up = moorage_sandbox.cli.up:up
example-extender=moorage_sandbox.cli.example:run

[pytest11]
moorage = b
"""


def _installed(folder: Path, distribution: str, text: str) -> str:
    about = folder / f"{distribution}-0.1.0.dist-info"
    about.mkdir(parents=True)
    (about / "entry_points.txt").write_text(text)
    return str(folder)


@pytest.mark.parametrize("distribution", ["moorage", "moorage_sandbox"])
def test_the_entry_points_of_a_group_are_read(tmp_path, monkeypatch, distribution):
    monkeypatch.setattr(sys, "path", [_installed(tmp_path, distribution, TEXT)])
    assert entry_points(GROUP) == {
        "up": "moorage_sandbox.cli.up:up",
        "example-extender": "moorage_sandbox.cli.example:run",
    }


def test_of_two_installations_the_first_on_the_path_counts(tmp_path, monkeypatch):
    first = _installed(tmp_path / "a", "moorage", f"[{GROUP}]\nup = a:up\n")
    second = _installed(tmp_path / "b", "moorage_lab", f"[{GROUP}]\nup = b:up\nbench = b:bench\n")
    monkeypatch.setattr(sys, "path", [first, second])
    assert entry_points(GROUP) == {"up": "a:up", "bench": "b:bench"}


def test_other_distributions_and_absent_folders_have_none(tmp_path, monkeypatch):
    other = _installed(tmp_path, "numpy", TEXT)
    (tmp_path / "moorage-0.1.0.dist-info").mkdir()
    monkeypatch.setattr(sys, "path", [other, str(tmp_path / "absent.zip")])
    assert entry_points(GROUP) == {}


@pytest.mark.parametrize("group", [GROUP, "moorage.exports", "pytest11", "console_scripts"])
def test_the_library_reads_the_same(group):
    ours = {
        point.name: point.value
        for point in metadata.entry_points(group=group)
        if point.dist is not None and point.dist.name.startswith("moorage")
    }
    assert ours
    assert entry_points(group) == ours


def test_a_target_is_imported():
    assert load("moorage.base.entry_points:load") is load


@pytest.mark.parametrize(
    ("module", "own"),
    [
        pytest.param("moorage", True, id="the scheduler"),
        pytest.param("moorage.engine.cycle", True, id="a module of the scheduler"),
        pytest.param("moorage_lab.bench", True, id="a room of the laboratory"),
        pytest.param("moorage_gpu", False, id="a plugin of somebody else with our prefix"),
        pytest.param("numpy", False, id="a dependency"),
    ],
)
def test_modules_of_the_three_packages_are_our_own(module: str, own: bool) -> None:
    assert is_own_module(module) is own
