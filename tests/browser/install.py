"""A real browser for the tests: fetched once, kept in ``.cache/browser`` of the checkout.

Place in the flow: test support only. Chromium comes out of the npm package ``@sparticuz/chromium``
(MIT; linux/amd64), which brings the libraries that a bare machine lacks; a Chromium that is
installed is not used, so that every machine tests with the same one. Playwright drives it: its
wheel holds a Node.js, which unpacks the browser, too. axe-core checks accessibility. All of them
are pinned here by their hashes. By hand: ``python -m tests.browser.install``.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import platform
import sys
import tarfile
import urllib.request
from pathlib import Path
from typing import NamedTuple

from tests.programs import ProgramError, run_quietly

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "browser"
REGISTRY = "https://registry.npmjs.org"
DOWNLOAD_SECONDS_MAX = 300


class Package(NamedTuple):
    """A package of the npm registry, or of another archive."""

    path: str
    sha256: str
    archive: str = REGISTRY


CHROMIUM = Package(
    "@sparticuz/chromium/-/chromium-153.0.0.tgz",
    "20e5656fcdcf4118ede85edfb9d6bb9cc1bbb7ffb8b75622fffbcf36a835c3c0",
)
AXE = Package(
    "axe-core/-/axe-core-4.14.1.tgz",
    "e6b0ce02b84d892e2e33e403485e7f3d6c29e2be6df65daf44d89ba564139745",
)
# Playwright, and the one package that it needs besides what its own wheel holds.
REQUIREMENTS = """\
playwright==1.65.2 --hash=sha256:58932d35f56767ab7ebcdd3d4a733bfb3e62a1a5bc43c08e28b9fa9b3e61cf33
greenlet==3.5.6 \
--hash=sha256:1c20ea32a73d17b9b60e3371240e17b0068120c98a5ec01a224a7dd8c89733ba \
--hash=sha256:975736b002ed080d124cf81a79cb7e05cb26d6b3f5c7a7b651c0fcce70353aa1 \
--hash=sha256:f98e8215e172f567ce80eeaed9107fb4d32b6c44f26983d9b8334658136a205a \
--hash=sha256:9a09d59bef1db94f384b5bcc2d523694d338f3df6b757aeeaf7baca5d0c0be88
"""
_UNPACK = """
const fs = require("fs"), zlib = require("zlib");
const [from, to] = process.argv.slice(1);
fs.writeFileSync(to, zlib.brotliDecompressSync(fs.readFileSync(from)));
"""


class NoBrowserError(Exception):
    """This machine cannot have the browser; the message says why."""


class Browser(NamedTuple):
    """The parts of the browser.

    Parameters
    ----------
    site
        The folder that Playwright can be imported from.
    program
        Chromium.
    libraries
        The folder of the libraries that Chromium needs.
    axe
        The script of axe-core.
    """

    site: Path
    program: Path
    libraries: Path
    axe: Path


def browser(cache: Path = CACHE) -> Browser:
    """Return the browser, fetching it if need be.

    Raises
    ------
    NoBrowserError
        The platform is not linux/amd64, or a package could not be downloaded.
    """
    check_platform("the browser")
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = Browser(
        cache / f"site-{version}",
        cache / "chromium" / "chromium",
        cache / "chromium" / "lib",
        cache / "axe.min.js",
    )
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # parallel test workers fetch it once
        if not (found.site / ".whole").exists():
            _install(found.site)
        if not found.axe.exists():
            put(found.axe, member(fetched(AXE), "package/axe.min.js"))
        if not found.program.exists():
            _unpack(fetched(CHROMIUM), found)
    return found


def check_platform(what: str) -> None:
    """Pass on the platform that the packages are for.

    Raises
    ------
    NoBrowserError
        This is another platform.
    """
    machine = (platform.system(), platform.machine())
    if machine != ("Linux", "x86_64"):
        raise NoBrowserError(f"no package ships {what} for {machine[0]} {machine[1]}")


def _install(site: Path) -> None:
    """Install Playwright with pip, which checks the hashes."""
    site.mkdir(exist_ok=True)
    requirements = site.with_suffix(".txt")
    requirements.write_text(REQUIREMENTS)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]
    command += ["--only-binary=:all:", "--require-hashes", "--retries=1", "--no-compile"]
    command += ["--target", str(site), "--requirement", str(requirements)]
    _run(command, "pip could not install playwright")
    (site / ".whole").touch()


def fetched(package: Package) -> bytes:
    """Download a package and check its hash.

    Raises
    ------
    NoBrowserError
        The package could not be downloaded, or is another one.
    """
    try:
        with urllib.request.urlopen(
            f"{package.archive}/{package.path}", timeout=DOWNLOAD_SECONDS_MAX
        ) as answer:
            content: bytes = answer.read()
    except OSError as error:
        raise NoBrowserError(f"{package.path} could not be downloaded: {error}") from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != package.sha256:
        raise NoBrowserError(f"{package.path} has the hash {digest}, not {package.sha256}")
    return content


def member(package: bytes, name: str) -> bytes:
    """Return a file of a package.

    Raises
    ------
    NoBrowserError
        The package has no such file.
    """
    with tarfile.open(fileobj=io.BytesIO(package), mode="r:gz") as archive:
        member = archive.extractfile(name)
        if member is None:
            raise NoBrowserError(f"{name} is not a file")
        return member.read()


def _unpack(package: bytes, found: Browser) -> None:
    """Unpack Chromium, its libraries, fonts and software renderer; the program comes last."""
    folder = found.program.parent
    folder.mkdir(exist_ok=True)
    node = found.site / "playwright" / "driver" / "node"
    for name in ("al2023.tar", "fonts.tar", "swiftshader.tar", "chromium"):
        packed, part = folder / f"{name}.br", folder / f"{name}.part"
        packed.write_bytes(member(package, f"package/bin/{name}.br"))
        _run([str(node), "-e", _UNPACK, str(packed), str(part)], f"{name} could not be unpacked")
        packed.unlink()
        if name.endswith(".tar"):
            with tarfile.open(part) as archive:
                archive.extractall(folder, filter="data")
            part.unlink()
        else:
            part.chmod(0o755)
            part.replace(folder / name)


def _run(command: list[str], fault: str) -> None:
    try:
        run_quietly(command, seconds=DOWNLOAD_SECONDS_MAX)
    except ProgramError as error:
        raise NoBrowserError(f"{fault}: {error}") from error


def put(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a file so that it is there as a whole, or not at all."""
    part = path.with_suffix(".part")
    part.write_bytes(content)
    part.chmod(mode)
    part.replace(path)


def main() -> None:
    """Fetch the browser and print where it is."""
    found = browser()
    sys.stdout.write(f"{found.program}\n")


if __name__ == "__main__":
    main()
