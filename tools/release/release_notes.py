"""Moves changelog fragments into a release: ``python -m tools.release.release_notes VERSION DATE``.

The rule is in ``changelog.d/README.md``: kinds in order, issues in order within a kind, each
fragment one list item; afterwards the fragments are gone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
KINDS = {
    "breaking": "Breaking",
    "feature": "New",
    "fix": "Fixed",
}
FRAGMENT = re.compile(rf"(?P<issue>\d+)(?:-(?P<part>\d+))?\.(?P<kind>{'|'.join(KINDS)})\.md")


def release_section(version: str, date: str, fragments: Mapping[str, str]) -> str:
    """Return the changelog section of a release.

    Parameters
    ----------
    version, date
        Of the release, for the heading.
    fragments
        Text by file name.

    Raises
    ------
    ValueError
        There is nothing to release, or a file name is not that of a fragment.
    """
    if not fragments:
        raise ValueError("there are no fragments, so there is nothing to release")
    items: dict[str, list[tuple[int, int, str]]] = {}
    for name, text in fragments.items():
        match = FRAGMENT.fullmatch(name)
        if match is None:
            raise ValueError(
                f"{name} is not named <issue>.<kind>.md with kind one of {list(KINDS)}"
            )
        issue, part = int(match["issue"]), int(match["part"] or 1)
        item = f"- {' '.join(text.split())} (#{issue})"
        items.setdefault(match["kind"], []).append((issue, part, item))
    lines = [f"## {version} ({date})", ""]
    for kind, title in KINDS.items():
        if kind in items:
            lines += [f"### {title}", "", *(item for _, _, item in sorted(items[kind])), ""]
    return "\n".join(lines)


def release(root: Path, version: str, date: str) -> None:
    """Put the section above the older ones and delete its fragments."""
    paths = [p for p in sorted((root / "changelog.d").glob("*.md")) if p.name != "README.md"]
    section = release_section(version, date, {p.name: p.read_text() for p in paths})
    changelog = root / "docs" / "changelog.md"
    head, mark, older = changelog.read_text().partition("\n## ")
    changelog.write_text(f"{head.rstrip()}\n\n{section}{mark}{older}")
    for path in paths:
        path.unlink()


def main(arguments: list[str]) -> int:
    """Release the fragments of this checkout."""
    if len(arguments) != 2:
        print("usage: python -m tools.release.release_notes VERSION DATE", file=sys.stderr)
        return 2
    try:
        release(ROOT, *arguments)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
