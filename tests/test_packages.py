"""No package imports one above it, and what each declares agrees with the pyproject at the top."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import pytest

from moorage.base.version import __version__
from tests import packages
from tools.release.repository import address

# What the sandbox needs anyway.
_NEEDED_BY_EXTRAS = frozenset({"protobuf>=6.31,<8"})


def _project(folder: str) -> dict[str, Any]:
    text = (packages.ROOT / folder / "pyproject.toml").read_text()
    project: dict[str, Any] = tomllib.loads(text)["project"]
    return project


def test_no_package_imports_a_package_above_it():
    upward = {
        (each.importer, each.imported) for each in packages.imports() if packages.is_upward(each)
    }
    assert sorted(upward) == []


def test_the_top_has_the_scripts_entry_points_and_dependencies_of_scheduler_and_sandbox():
    top, scheduler, sandbox = (_project(folder) for folder in (".", "scheduler", "sandbox"))
    assert top["scripts"] == scheduler["scripts"]
    assert top["entry-points"] == sandbox["entry-points"]
    both = {*scheduler["dependencies"], *sandbox["dependencies"]}
    assert {*top["dependencies"]} == both - {f"moorage-scheduler=={__version__}"}


@pytest.mark.parametrize("folder", ["scheduler", "sandbox", "lab"])
def test_the_extras_of_a_package_are_those_of_the_top(folder: str):
    extras = _project(".")["optional-dependencies"]
    own = _project(folder).get("optional-dependencies", {})
    assert {name: {*each} - {*extras[name], *_NEEDED_BY_EXTRAS} for name, each in own.items()} == {
        name: set() for name in own
    }


def test_all_packages_have_one_version():
    texts = ["", *(f"{folder}/" for folder in ("scheduler", "sandbox", "lab"))]
    pins = [
        pin
        for folder in texts
        for pin in re.findall(
            r'"(moorage[a-z-]*==[^"]+)"', (packages.ROOT / folder / "pyproject.toml").read_text()
        )
    ]
    names = ("moorage", "moorage-lab", "moorage-scheduler")
    assert sorted(pins) == sorted(f"{name}=={__version__}" for name in names)


@pytest.mark.parametrize("folder", [".", "scheduler", "sandbox", "lab"])
def test_each_distribution_names_its_authors_maintainers_and_addresses(folder: str):
    project = _project(folder)
    named = [{"name": "The moorage authors"}]
    assert (project["authors"], project["maintainers"]) == (named, named)
    assert project["urls"]["Repository"] == address()
    assert all(url.startswith(address()) for url in project["urls"].values())
    assert project["urls"] == _project(".")["urls"]


def test_the_api_server_and_its_clients_know_little_of_the_scheduler():
    plan = packages.plan()["peers"]
    shared = {*plan["rooms"], *plan["shared"]}
    wrong = {
        (each.importer, each.imported)
        for each in packages.imports()
        if each.importer.split(".")[1:2] and each.importer.split(".")[1] in plan["rooms"]
        if each.imported.split(".")[1] not in shared
    }
    assert sorted(wrong) == []


def test_every_room_of_the_plan_exists():
    plan = packages.plan()["peers"]
    rooms = {".".join(name.split(".")[1:2]) for name in packages.modules()}
    assert sorted({*plan["rooms"], *plan["shared"]} - rooms) == []


def test_run_reaches_no_more_modules_of_other_packages():
    foreign = {
        module
        for module in packages.reached(packages.RUN)
        if packages.package_of(module) != "moorage"
    }
    assert len(foreign) <= packages.plan()["run"]["foreign_modules"], sorted(foreign)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("import moorage_sandbox.sandbox.up", True, id="an import"),
        pytest.param("from moorage_sandbox.sandbox import up", True, id="a module of a package"),
        pytest.param(
            "from moorage_sandbox.pictures.bars import draw", True, id="a name of a module"
        ),
        pytest.param(
            "def f():\n    from moorage_lab.fault_sim import walk", True, id="a lazy import"
        ),
        pytest.param(
            "import_module('moorage_sandbox.sandbox.up')", True, id="a module by its text"
        ),
        pytest.param("X = 'moorage_sandbox.cli.up.command:up'", True, id="a command by its text"),
        pytest.param("from moorage.service import pump", False, id="a room of the same package"),
        pytest.param("X = 'see moorage_sandbox.sandbox.up'", False, id="a sentence about a module"),
    ],
)
def test_an_import_is_found(text: str, found: bool):
    imports = packages.imports_of("moorage.virtual.kinds", text)
    assert any(packages.is_upward(each) for each in imports) is found
