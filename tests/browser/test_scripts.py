"""The page's own scripts and styles: typed, formatted and linted, as the Python is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser.install import NoBrowserError
from tests.browser.scripts import Programs, faults_of_form, faults_of_types, programs

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def checkers() -> Programs:
    """The programs; where they cannot be had, tests are skipped with the reason."""
    try:
        return programs()
    except NoBrowserError as error:
        pytest.skip(str(error))


def test_tsc_finds_no_fault_in_the_types(checkers: Programs, tmp_path: Path) -> None:
    assert faults_of_types(checkers, tmp_path) == ""


def test_biome_finds_scripts_and_styles_in_their_form_and_without_faults(
    checkers: Programs, tmp_path: Path
) -> None:
    assert faults_of_form(checkers, tmp_path) == ""
