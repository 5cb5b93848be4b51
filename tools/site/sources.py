"""Writes the sources of the site: the pages of docs, the pages of entries, and those of Python."""

from __future__ import annotations

import inspect
import pkgutil
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from tools.site.navigation import START, Entry

# A link of Markdown to a file next to or above the page, with its fragment.
_LINK: Final = re.compile(r"\]\((?P<path>[^)#:\s]+)(?P<fragment>#[^)\s]*)?\)")
ENTRIES: Final = "entries"
"""The folder of the entries' pages."""
_INDEX: Final = ("index.md", "README.md")


def write_sources(root: Path, entries: Sequence[Entry], target: Path, address: str) -> None:
    """Write all that the generator reads into an empty folder.

    Parameters
    ----------
    root
        The checkout.
    entries
        The navigation.
    target
        The folder; it is made.
    address
        Where files that are no pages are read, such as ``https://HOST/OWNER/NAME/blob/v0.1.0``.

    Raises
    ------
    FileNotFoundError
        A page has a link to a file that the checkout lacks.
    """
    docs = root / "docs"
    shutil.copytree(docs, target, ignore=shutil.ignore_patterns("*.json"))
    catalogues = tuple(f for top in entries for each in top.all() for f in each.catalogues)
    for path in sorted(target.rglob("*.md")):
        name = path.relative_to(target).as_posix()
        text = _with_addresses(path.read_text(), docs / name, root, address)
        if name.startswith(catalogues or "/") and path.name not in _INDEX:
            text = f"---\norphan: true\n---\n\n{text}"
        path.write_text(text)
    for top in entries:
        _write_entry(top, target, Path(ENTRIES))
    start = target / START
    start.write_text(_start(start.read_text(), entries))


def _with_addresses(text: str, page: Path, root: Path, address: str) -> str:
    """Return a page whose links to files outside docs lead to the repository."""

    def link(match: re.Match[str]) -> str:
        path = (page.parent / match["path"]).resolve()
        if path.is_relative_to(root / "docs") and path.suffix != ".json":
            return match[0]
        if not path.exists():
            raise FileNotFoundError(f"{page}: there is no {match['path']}")
        place = f"{address}/{path.relative_to(root).as_posix()}"
        return f"]({place}{match['fragment'] or ''})"

    return _LINK.sub(link, text)


def _write_entry(entry: Entry, target: Path, folder: Path) -> str:
    """Write the page of an entry and of those below it, and return its path below the target."""
    slug = _slug(entry)
    below = [_write_entry(each, target, folder / slug) for each in entry.entry]
    names = [_write_name(each, target) for each in entry.python]
    catalogues = [f"{each}{_index_of(target / each)}" for each in entry.catalogues]
    path = folder / f"{slug}.md"
    text = f"# {entry.title}\n\n{entry.text}\n\n"
    (target / folder).mkdir(parents=True, exist_ok=True)
    (target / path).write_text(text + _contents([*below, *entry.pages, *names, *catalogues], ""))
    return path.as_posix()


def _write_name(name: str, target: Path) -> str:
    """Write the page of a public name of Python, and return its path below the target."""
    value = pkgutil.resolve_name(name)
    directive, options = "autofunction", ""
    if inspect.ismodule(value):
        directive, options = "automodule", "   :members:\n"
    elif inspect.isclass(value):
        directive, options = "autoclass", "   :members:\n"
    path = f"reference/python/{name.lower().replace('.', '-')}.md"
    (target / path).parent.mkdir(parents=True, exist_ok=True)
    (target / path).write_text(
        f"# `{name}`\n\n```{{eval-rst}}\n.. {directive}:: {name}\n{options}```\n"
    )
    return path


def _slug(entry: Entry) -> str:
    return re.sub(r"[^a-z0-9]+", "-", entry.title.lower()).strip("-")


def _index_of(folder: Path) -> str:
    return next(name for name in _INDEX if (folder / name).exists())


def _start(text: str, entries: Sequence[Entry]) -> str:
    paths = [f"{ENTRIES}/{_slug(each)}.md" for each in entries]
    return f"{text}\n{_contents(paths, ':hidden:')}"


def _contents(paths: Sequence[str], option: str) -> str:
    def lines() -> Iterator[str]:
        yield "```{toctree}"
        if option:
            yield option
        yield from (f"/{path.removesuffix('.md')}" for path in paths)
        yield "```"

    return "\n".join(lines()) + "\n"
