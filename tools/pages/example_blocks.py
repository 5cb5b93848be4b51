"""Fills the marked blocks of hand-written pages with files under ``examples/``.

A page marks a block with a comment that names the file, on the line before the fence::

    <!-- examples/profiles/coscheduling.yaml -->

``make docs`` writes the file there without its leading comment, which tells how to start it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

_BLOCK = re.compile(r"(<!-- (examples/[\w./-]+) -->\n```\w+\n).*?(^```$)", re.DOTALL | re.MULTILINE)


def filled(text: str, root: Path) -> str:
    """Return a page whose marked blocks hold what their files hold.

    Parameters
    ----------
    text
        The page.
    root
        The folder that the names of files start from.

    Raises
    ------
    LookupError
        A marked block names a file that does not exist.
    """

    def block(found: re.Match[str]) -> str:
        path = root / found[2]
        if not path.is_file():
            raise LookupError(f"a page shows {found[2]}, which does not exist")
        return f"{found[1]}{_without_head(path.read_text())}{found[3]}"

    return _BLOCK.sub(block, text)


def pages_with_examples(docs: Path) -> Iterator[tuple[Path, str]]:
    """Yield every page below a folder that has marked blocks, with its blocks filled."""
    for page in sorted(docs.rglob("*.md")):
        text = page.read_text()
        if _BLOCK.search(text):
            yield page, filled(text, docs.parent)


def _without_head(text: str) -> str:
    lines = text.splitlines(keepends=True)
    while lines and lines[0].startswith("#"):
        del lines[0]
    return "".join(lines)
