"""A real promtool for the tests: fetched once from Debian's archive, kept in ``.cache/promtool``.

The package ``prometheus`` (Apache-2.0, linux/amd64) holds the program. By hand:
``python -m tests.deploy.promtool``.
"""

from __future__ import annotations

import fcntl
import io
import sys
import tarfile
from pathlib import Path

from tests.browser.install import NoBrowserError, Package, check_platform, fetched, put

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "promtool"
PACKAGE = Package(
    "debian/pool/main/p/prometheus/prometheus_2.42.0+ds-5+deb12u1_amd64.deb",
    "81d59a24fce84f7fbe97a45a4f2914b6a5881b5cd1db2a6a0e129e515e1a5f55",
    "https://deb.debian.org",
)
_MAGIC = b"!<arch>\n"
_HEADER = 60  # bytes before each member of an ar archive


def promtool_path(cache: Path = CACHE) -> Path:
    """Return the path of promtool, fetching it if need be.

    Raises
    ------
    NoBrowserError
        The platform is not linux/amd64, or the package could not be had.
    """
    check_platform("promtool")
    program = cache / "promtool"
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # parallel test workers fetch it once
        if not program.exists():
            put(program, unpack(fetched(PACKAGE)), 0o755)
    return program


def unpack(package: bytes) -> bytes:
    """Return promtool out of the bytes of the package.

    Raises
    ------
    NoBrowserError
        The package is not laid out like that.
    """
    data = _members(package).get("data.tar.xz")
    if data is None:
        raise NoBrowserError("the package has no data.tar.xz")
    with tarfile.open(fileobj=io.BytesIO(data), mode="r:xz") as archive:
        member = archive.extractfile("./usr/bin/promtool")
        if member is None:
            raise NoBrowserError("promtool is not a file")
        return member.read()


def _members(package: bytes) -> dict[str, bytes]:
    """Return the members of an ar archive by name."""
    if not package.startswith(_MAGIC):
        raise NoBrowserError("the package is not an ar archive")
    found, place = {}, len(_MAGIC)
    while place < len(package):
        header = package[place : place + _HEADER]
        name, size = header[:16].decode().strip(" /"), int(header[48:58])
        place += _HEADER
        found[name] = package[place : place + size]
        place += size + size % 2
    return found


def main() -> None:
    """Fetch promtool and print where it is."""
    sys.stdout.write(f"{promtool_path()}\n")


if __name__ == "__main__":
    main()
