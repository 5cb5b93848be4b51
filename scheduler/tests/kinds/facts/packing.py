"""Packs the facts of the API for the package, and checks what the package ships against them.

The source is a folder with ``schema.json.gz`` and ``kinds.json.gz``, as a script makes them from
the public OpenAPI document.

Usage: ``python -m scheduler.tests.kinds.facts.packing {check,pack} FOLDER``
"""

from __future__ import annotations

import gzip
import sys
from pathlib import Path

import msgspec

from moorage.kinds import facts

NAMES = ("schema", "kinds")
PACKAGE = Path(facts.__file__).parent


def packed(source: bytes) -> bytes:
    """Return a packed file that holds the same JSON; equal input gives equal bytes."""
    found = msgspec.json.decode(gzip.decompress(source))
    return gzip.compress(msgspec.json.encode(found), compresslevel=9, mtime=0)


def differences(folder: Path, package: Path = PACKAGE) -> list[str]:
    """Return the names of the shipped files whose content differs from the source."""
    return [name for name in NAMES if _content(folder, name) != _content(package, name)]


def pack(folder: Path, package: Path = PACKAGE) -> None:
    """Write the shipped files anew."""
    for name in NAMES:
        source = (folder / f"{name}.json.gz").read_bytes()
        (package / f"{name}.json.gz").write_bytes(packed(source))


def _content(folder: Path, name: str) -> object:
    return msgspec.json.decode(gzip.decompress((folder / f"{name}.json.gz").read_bytes()))


def main(verb: str, folder: Path) -> int:
    """Pack or check; the exit code is 1 where a shipped file differs from the source."""
    if verb == "pack":
        pack(folder)
    found = differences(folder)
    sys.stdout.write(f"different: {', '.join(found)}\n" if found else "equal\n")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2])))
