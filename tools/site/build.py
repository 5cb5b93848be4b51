"""Builds the site: ``python -m tools.site.build [TARGET]``; needs no network.

Every warning is an error: a link that leads nowhere, a page that no entry lists.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Final

from sphinx.cmd.build import build_main

from tools.release.repository import at_version
from tools.site.navigation import faults, read_navigation
from tools.site.sources import write_sources

ROOT: Final = Path(__file__).resolve().parents[2]
TARGET: Final = ROOT / "dist" / "site"


def build(root: Path, target: Path) -> int:
    """Build the site, and return the exit code of the generator.

    Parameters
    ----------
    root
        The checkout.
    target
        The folder of the site.
    """
    entries = read_navigation()
    wrong = faults(entries, root / "docs")
    if wrong:
        print("tools/site/navigation.toml:", *wrong, sep="\n  ", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        sources = Path(folder) / "sources"
        write_sources(root, entries, sources, at_version())
        options = ["-b", "html", "-j", "auto", "-q", "-W", "--keep-going"]
        places = ["-c", str(Path(__file__).parent), "-d", str(Path(folder) / "trees")]
        return build_main([*options, *places, str(sources), str(target)])


def main(arguments: list[str]) -> int:
    """Build into the folder that is named, or into ``dist/site``."""
    target = Path(arguments[0]) if arguments else TARGET
    code = build(ROOT, target)
    if code == 0:
        print(f"the site begins at {target / 'index.html'}")
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
