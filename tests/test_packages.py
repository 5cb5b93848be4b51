"""The house will be three packages, and no package imports one above it.

Until then ``tests/packages.toml`` lists the imports that are still to be mended. The list is only
ever made shorter.
"""

from __future__ import annotations

import pytest

from tests import packages


def _listed() -> set[tuple[str, str]]:
    exceptions = packages.plan()["exceptions"]
    return {(importer, name) for importer, names in exceptions.items() for name in names}


def _upward() -> set[tuple[str, str]]:
    return {
        (each.importer, each.imported) for each in packages.imports() if packages.is_upward(each)
    }


def test_no_package_imports_a_package_above_it_but_as_listed():
    assert sorted(_upward() - _listed()) == []


def test_a_mended_import_leaves_the_list():
    assert sorted(_listed() - _upward()) == []


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
    imports = packages.imports_of("moorage.what_if.kinds", text)
    assert any(packages.is_upward(each) for each in imports) is found
