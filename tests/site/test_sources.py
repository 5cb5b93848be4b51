"""The sources of the site, as they are written for the generator."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.site.navigation import Entry
from tools.site.sources import write_sources

ADDRESS = "https://example.com/blob/v1"
ENTRIES = (
    Entry("Begin here", "A sentence.", pages=("a.md",)),
    Entry("Look up", entry=(Entry("Names", python=("pathlib.Path",)),), catalogues=("list/",)),
)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    files = {
        "docs/index.md": "# Start\n",
        "docs/a.md": "# A\n\n[b](list/one.md#x) [licence](../LICENSE) [data](data.json)\n",
        "docs/data.json": "{}",
        "docs/list/README.md": "# List\n",
        "docs/list/one.md": "# One\n",
        "LICENSE": "text",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture
def written(root: Path) -> dict[str, str]:
    target = root / "out"
    write_sources(root, ENTRIES, target, ADDRESS)
    paths = sorted(target.rglob("*.md"))
    return {path.relative_to(target).as_posix(): path.read_text() for path in paths}


def test_each_entry_and_each_name_gets_a_page(written: dict[str, str]):
    assert list(written) == [
        "a.md",
        "entries/begin-here.md",
        "entries/look-up/names.md",
        "entries/look-up.md",
        "index.md",
        "list/README.md",
        "list/one.md",
        "reference/python/pathlib-path.md",
    ]


def test_a_link_out_of_the_documents_leads_to_the_repository(written: dict[str, str]):
    assert written["a.md"] == (
        f"# A\n\n[b](list/one.md#x) [licence]({ADDRESS}/LICENSE) [data]({ADDRESS}/docs/data.json)\n"
    )


def test_an_entry_lists_what_is_below_it(written: dict[str, str]):
    assert written["entries/look-up.md"].endswith(
        "```{toctree}\n/entries/look-up/names\n/list/README\n```\n"
    )
    assert written["index.md"].endswith(
        "```{toctree}\n:hidden:\n/entries/begin-here\n/entries/look-up\n```\n"
    )


def test_a_page_of_a_catalogue_is_no_entry_but_its_list_is(written: dict[str, str]):
    assert written["list/one.md"].startswith("---\norphan: true\n---\n")
    assert written["list/README.md"] == "# List\n"


def test_a_class_is_described_with_its_members(written: dict[str, str]):
    assert written["reference/python/pathlib-path.md"] == (
        "# `pathlib.Path`\n\n```{eval-rst}\n.. autoclass:: pathlib.Path\n   :members:\n```\n"
    )


def test_a_link_to_a_missing_file_is_named_with_its_page(root: Path):
    (root / "docs/a.md").write_text("[b](../gone.txt)\n")
    with pytest.raises(FileNotFoundError, match=r"a\.md: there is no \.\./gone\.txt"):
        write_sources(root, ENTRIES, root / "out", ADDRESS)
