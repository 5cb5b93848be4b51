"""The licence of every locked package is known and allowed, and the record is that of the lock."""

from __future__ import annotations

from email.parser import HeaderParser
from importlib.metadata import PackageNotFoundError, distribution

import pytest

from tools.release.packages import (
    ROOT,
    Package,
    described,
    faults,
    licence_of,
    locked,
    recorded,
    scopes,
    vendored,
)


def test_every_locked_package_has_a_known_and_allowed_licence() -> None:
    assert faults(recorded(), [each.pin for each in locked()]) == []
    shipped = {each.package: Package(each.licence) for each in vendored()}
    assert faults(shipped, shipped) == []


def test_the_record_is_that_of_the_lock_and_of_the_packages_metadata() -> None:
    packages, entries = recorded(), locked()
    assert sorted(packages) == sorted(each.pin for each in entries)
    names, compared = {each.name for each in entries}, 0
    for each in entries:
        try:
            found = distribution(each.name)
        except PackageNotFoundError:
            continue  # of another platform, or younger than this environment
        if found.version == each.version:
            metadata = HeaderParser().parsestr(found.read_text("METADATA") or "")
            assert described(metadata, names) == packages[each.pin], each.pin
            compared += 1
    assert compared > len(entries) // 2


@pytest.mark.parametrize(
    ("licence", "told"),
    [
        pytest.param("MIT", [], id="one licence"),
        pytest.param("GPL-3.0-only OR MIT", [], id="a choice of which one is allowed"),
        pytest.param(
            "GPL-3.0-only AND MIT",
            ["a==1: GPL-3.0-only AND MIT is not allowed"],
            id="two that count both, of which one is not allowed",
        ),
        pytest.param(
            "",
            ["a==1: unknown licence: read its files, and add it to tools/release/packages.py"],
            id="none",
        ),
    ],
)
def test_a_licence_that_is_unknown_or_not_allowed_is_a_fault(licence: str, told: list[str]) -> None:
    assert faults({"a==1": Package(licence)}, ["a==1"]) == told
    assert faults({}, ["a==1"]) == ["a==1: not recorded: run make licences"]


@pytest.mark.parametrize(
    ("headers", "licence"),
    [
        pytest.param("License-Expression: MIT OR ISC\nLicense: other", "MIT OR ISC", id="SPDX"),
        pytest.param("License: BSD-2-Clause", "BSD-2-Clause", id="an SPDX id in the old field"),
        pytest.param("Classifier: License :: OSI Approved :: MIT License", "MIT", id="classifier"),
        pytest.param("Classifier: License :: OSI Approved :: BSD License", "", id="which BSD?"),
        pytest.param("License: see the file", "", id="words"),
    ],
)
def test_a_licence_is_taken_from_the_metadata_only_where_it_is_plain(
    headers: str, licence: str
) -> None:
    assert licence_of(HeaderParser().parsestr(f"Name: a\n{headers}\n")) == licence


def test_the_scopes_are_those_of_the_image() -> None:
    """The image has what the scheduler and its two extras need, without the sandbox's live view."""
    found = scopes(recorded())
    image = {each.name for each in locked(ROOT / "deploy" / "requirements.lock")}
    required = {name for name, scope in found.items() if scope == "required"}
    assert required - image == {"rich", "markdown-it-py", "mdurl", "pygments"}
    assert "excluded" not in {found[name] for name in image}
