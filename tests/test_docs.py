"""Documents hold together: links lead somewhere, pages are reachable, generated ones are fresh.

Left out: whether the prose is true, and links to other sites.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import click
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests import packages
from tools.pages import generate
from tools.release.release_notes import FRAGMENT

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(
    [*DOCS.rglob("*.md"), *(ROOT / "changelog.d").glob("*.md"), *ROOT.glob("*.md")],
)
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_RECORD_WORDS = 400
_RECORD_HEADINGS = ["Context", "Decision", "Consequences", "Rejected", "Evidence"]


def _prose(text: str) -> str:
    """Return the text without fenced blocks, whose brackets are not links."""
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


_TEST = re.compile(r"`((?:(?:scheduler|sandbox|lab)/)?tests/[a-z_0-9/.]+)")


def _anchors(text: str) -> set[str]:
    """Anchors of a page's headings, made as the usual hosts make them."""
    headings = re.findall(r"^#+ (.+)$", _prose(text), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in headings}


def _broken_links(page: Path, text: str) -> list[str]:
    broken = []
    for link in _LINK.findall(_prose(text)):
        if re.match(r"[a-z]+:", link):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        known = not anchor or (target.is_file() and anchor in _anchors(target.read_text()))
        if not target.exists() or not known:
            broken.append(link)
    return broken


def _targets(page: Path) -> set[Path]:
    links = (link.partition("#")[0] for link in _LINK.findall(_prose(page.read_text())))
    return {(page.parent / link).resolve() for link in links if link}


def test_each_threat_names_tests_that_exist() -> None:
    page = (DOCS / "explanation/security.md").read_text()
    rows = [line.split("|") for line in page.partition("## Threats")[2].splitlines() if "|" in line]
    tried = {row[2].strip(): re.findall(_TEST, row[4]) for row in rows[2:]}
    assert len(tried) > 15
    assert [threat for threat, tests in tried.items() if not tests] == []
    named = re.findall(_TEST, page)
    assert [test for test in named if not (ROOT / test).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_the_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert _broken_links(page, page.read_text()) == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# One two\n[a](page.md) [b](#one-two) [c](nowhere.md) [d](#three)\n[e](https://x.test)\n"
        "```\n[f](code)\n```\n"
    )
    assert _broken_links(page, page.read_text()) == ["nowhere.md", "#three"]


def test_each_page_can_be_reached_from_the_index() -> None:
    reached, waiting = set[Path](), [DOCS / "index.md"]
    while waiting:
        page = waiting.pop()
        if page.suffix == ".md" and page.is_file() and page not in reached:
            reached.add(page)
            waiting += sorted(_targets(page))
    assert sorted(p.relative_to(DOCS) for p in set(DOCS.rglob("*.md")) - reached) == []


def test_the_dependency_page_names_exactly_what_pyproject_asks_for() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    names = {canonicalize_name(Requirement(text).name) for group in groups for text in group}
    wanted = names - {"moorage", "moorage-lab"}
    page = (DOCS / "dependencies.md").read_text()
    rows = re.findall(r"^\| ([a-z0-9-]+) \| .+ \| .+ \| .+ \|$", page, flags=re.MULTILINE)
    assert sorted(rows) == sorted(wanted)


def test_decision_records_are_numbered_listed_and_complete() -> None:
    records = sorted((DOCS / "decisions").glob("[0-9]*.md"))
    numbers = [int(p.name[:4]) for p in records]
    assert numbers == sorted(set(numbers))
    headings = {
        p.name: re.findall(r"^## (.+)$", p.read_text(), flags=re.MULTILINE) for p in records
    }
    assert headings == {p.name: _RECORD_HEADINGS for p in records}
    rows = re.findall(r"\((0.+?\.md)\)", (DOCS / "decisions/README.md").read_text())
    assert rows == [p.name for p in records]


def test_decision_records_have_a_status_line_and_at_most_four_hundred_words() -> None:
    texts = {p.name: p.read_text() for p in sorted((DOCS / "decisions").glob("[0-9]*.md"))}
    status = re.compile(r"Status: (accepted|proposed|replaced), \d{4}-\d\d-\d\d\.")
    assert [name for name, text in texts.items() if not status.match(text.splitlines()[2])] == []
    words = {
        name: len(re.findall(r"[A-Za-z0-9]\S*", re.sub(r"(?m)^#.*$", "", text)))
        for name, text in texts.items()
    }
    assert {name: count for name, count in words.items() if count > _RECORD_WORDS} == {}


def test_changelog_fragments_are_named_by_issue_and_kind() -> None:
    names = [p.name for p in (ROOT / "changelog.d").iterdir() if p.name != "README.md"]
    assert [name for name in names if not FRAGMENT.fullmatch(name)] == []


def test_the_generated_pages_are_fresh() -> None:
    wanted = generate.pages()
    assert generate.stale(wanted) == [], "run make docs"
    # As long as there is no command line there must be no page that describes one.
    assert (generate.REFERENCE / "cli.md").exists() == generate.has_cli()


def test_a_page_that_differs_or_is_missing_is_stale(tmp_path: Path) -> None:
    fresh, old, missing = (tmp_path / name for name in ("fresh.md", "old.md", "missing.md"))
    fresh.write_text("now")
    old.write_text("then")
    assert generate.stale({fresh: "now", old: "now", missing: "now"}) == ["old.md", "missing.md"]


def test_the_command_page_shows_each_command_with_its_help() -> None:
    @click.group(context_settings={"help_option_names": ["--help"]})
    def root() -> None:
        """Do everything."""

    @root.command()
    @click.option("--count", default=1, help="How many.")
    def add(count: int) -> None:
        """Add something."""

    @root.command(hidden=True)
    def secret() -> None:
        """Stay unseen."""

    page = generate.cli_page(root)
    assert re.findall(r"^## (.+)$", page, flags=re.MULTILINE) == ["moorage", "moorage add"]
    assert "Usage: moorage [OPTIONS] COMMAND [ARGS]..." in page
    assert "Usage: moorage add [OPTIONS]" in page
    assert "  --count INTEGER  How many." in page


_SPOKEN_COMMAND = re.compile(r"(?:`|\$ |^ +)(?:\.venv/bin/)?moorage ([a-z][a-z-]*)\b", re.MULTILINE)


def test_only_commands_that_exist_are_spoken_of() -> None:
    known = set(generate.root_command().list_commands(click.Context(click.Group())))
    texts = [*PAGES, *packages.modules().values(), *(ROOT / "examples").rglob("*.*")]
    spoken = {(p.name, c) for p in texts for c in _SPOKEN_COMMAND.findall(p.read_text())}
    assert len(spoken) > 50
    assert sorted((page, command) for page, command in spoken if command not in known) == []


_ROOMS = sorted(
    path.name
    for source in packages.SOURCES
    for path in source.glob("*/*")
    if path.is_dir() and path.name not in ("__pycache__", "api", "apiserver")  # upstream has these
)
_MODULE = re.compile(rf"`(?:(?:{'|'.join(_ROOMS)})/[a-z_0-9/]+|apiserver/[a-z_/]+\.py)")


def _exists(name: str) -> bool:
    inside = (path for source in packages.SOURCES for path in source.glob(f"*/{name}"))
    module = (path for source in packages.SOURCES for path in source.glob(f"*/{name}.py"))
    return (ROOT / name).exists() or (ROOT / f"{name}.py").exists() or any(inside) or any(module)


def test_modules_and_tests_that_are_spoken_of_exist() -> None:
    texts = [
        *PAGES,
        *packages.modules().values(),
        *(path for folder in packages.TESTS for path in (ROOT / folder).rglob("*.py")),
    ]
    spoken = set()
    for page in texts:
        text = page.read_text()
        spoken |= {(page.name, name[1:]) for name in _MODULE.findall(text)}
        spoken |= {(page.name, name) for name in _TEST.findall(text)}
    assert len(spoken) > 50
    assert sorted((page, name) for page, name in spoken if not _exists(name)) == []


def test_the_code_map_has_a_sentence_about_each_room() -> None:
    text = (ROOT / "docs/explanation/code-map.md").read_text()
    rooms = {
        path.parent.name for source in packages.SOURCES for path in source.glob("*/*/__init__.py")
    }
    assert set(re.findall(r"^\| `([a-z_]+)` \| [A-Z]", text, re.MULTILINE)) == rooms
