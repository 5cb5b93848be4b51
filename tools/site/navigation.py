"""The navigation of the site: its entries, and the rule that each page is in exactly one place."""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

FILE: Final = Path(__file__).with_name("navigation.toml")
MOST_ENTRIES: Final = 7
START: Final = "index.md"


class Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of the navigation: a group of entries, of pages, or of Python's public names.

    Parameters
    ----------
    title
        Its name in the navigation.
    text
        A sentence for the start page; entries of the first level have one.
    entry
        The entries below it.
    pages
        Its pages, as paths below docs.
    python
        Public names of Python, each a page of its own.
    catalogues
        Folders below docs with many pages of one form; their index page is the entry.
    """

    title: str
    text: str = ""
    entry: tuple[Entry, ...] = ()
    pages: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    catalogues: tuple[str, ...] = ()

    def below(self) -> int:
        """Return how many entries are one level below this."""
        return sum(map(len, (self.entry, self.pages, self.python, self.catalogues)))

    def all(self) -> Iterator[Entry]:
        """Yield this entry and all below it."""
        yield self
        for each in self.entry:
            yield from each.all()


def read_navigation(file: Path = FILE) -> tuple[Entry, ...]:
    """Return the entries of the first level.

    Raises
    ------
    msgspec.ValidationError
        The file has another form.
    """
    content: dict[str, Any] = tomllib.loads(file.read_text())
    return msgspec.convert(content["entry"], tuple[Entry, ...])


def faults(entries: Sequence[Entry], docs: Path) -> list[str]:
    """Return what is wrong with a navigation, one sentence each.

    Parameters
    ----------
    entries
        The first level.
    docs
        The folder of the pages.
    """
    everything = [each for top in entries for each in top.all()]
    listed = Counter(page for each in everything for page in each.pages)
    folders = tuple(folder for each in everything for folder in each.catalogues)
    pages = {
        path.relative_to(docs).as_posix()
        for path in docs.rglob("*.md")
        if not path.relative_to(docs).as_posix().startswith(folders or "/")
    } - {START}
    levels = [("the first level", len(entries)), *((e.title, e.below()) for e in everything)]
    return [
        *(f"{page} is in no entry" for page in sorted(pages - listed.keys())),
        *(f"{page} is no page of docs" for page in sorted(listed.keys() - pages)),
        *(f"{page} is in {count} entries" for page, count in sorted(listed.items()) if count > 1),
        *(
            f"{title} has {count} entries, at most {MOST_ENTRIES} are read at a glance"
            for title, count in levels
            if count > MOST_ENTRIES
        ),
    ]
