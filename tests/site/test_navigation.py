"""The navigation of the site: each page in one place, at most seven entries a level."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tools.site.build import ROOT
from tools.site.navigation import Entry, faults, read_navigation


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    for name in ("index.md", "a.md", "b.md", "list/index.md", "list/one.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("# A page\n")
    return tmp_path


LIST = Entry("List", catalogues=("list/",))


def test_the_navigation_lists_every_page_of_the_documents():
    assert faults(read_navigation(), ROOT / "docs") == []


@pytest.mark.parametrize(
    ("entries", "sentences"),
    [
        pytest.param([Entry("All", pages=("a.md", "b.md")), LIST], [], id="all pages, once"),
        pytest.param([Entry("All", pages=("a.md",)), LIST], ["b.md is in no entry"], id="missing"),
        pytest.param(
            [Entry("All", pages=("a.md", "b.md", "c.md")), LIST],
            ["c.md is no page of docs"],
            id="deleted",
        ),
        pytest.param(
            [Entry("All", pages=("a.md", "b.md")), Entry("Again", pages=("a.md",)), LIST],
            ["a.md is in 2 entries"],
            id="twice",
        ),
        pytest.param(
            [Entry("All", pages=("a.md", "b.md")), LIST, *[Entry("More")] * 6],
            ["the first level has 8 entries, at most 7 are read at a glance"],
            id="too many at the top",
        ),
        pytest.param(
            [Entry("All", pages=("a.md", "b.md"), python=tuple("cdefgh")), LIST],
            ["All has 8 entries, at most 7 are read at a glance"],
            id="too many below",
        ),
    ],
)
def test_a_fault_of_the_navigation_is_one_sentence(
    entries: list[Entry], sentences: list[str], docs: Path
):
    assert faults(entries, docs) == sentences


def test_an_unknown_field_is_refused(tmp_path: Path):
    file = tmp_path / "navigation.toml"
    file.write_text('[[entry]]\ntitle = "A"\npage = ["a.md"]\n')
    with pytest.raises(msgspec.ValidationError, match="page"):
        read_navigation(file)
