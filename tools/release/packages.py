"""The locked packages with their licences and requirements, recorded with the lock.

``make licences`` reads both from the packages' own metadata and writes `RECORD`. A release, the
page of licences and the tests read the record, so that they need no package index. An environment
has only the packages of its platform and Python; the metadata of others is fetched.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable, Mapping
from email.message import Message
from email.parser import HeaderParser
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).resolve().parents[2]
LOCK: Final = ROOT / "requirements.lock"
RECORD: Final = ROOT / "docs" / "packages.json"
VENDORED: Final = ROOT / "scheduler" / "src" / "moorage" / "dashboard" / "vendored.json"
_BLOCK: Final = re.compile(
    r"^(?P<name>[\w.-]+)==(?P<version>[^\s;\\]+)(?P<rest>(?:.*\\\n)*.*)$", re.MULTILINE
)
_HASH: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_EXTRA: Final = re.compile(r"extra *== *[\"']([\w.-]+)[\"']")

ALLOWED: Final = frozenset(
    {
        "0BSD",
        "Apache-2.0",
        "BSD-2-Clause",
        "BSD-3-Clause",
        "CC-PDDC",
        "CC0-1.0",
        "HPND",
        "ISC",
        "MIT",
        "MIT-0",
        "MIT-CMU",
        "MPL-2.0",
        "PSF-2.0",
        "Python-2.0",
        "Unlicense",
        "Zlib",
    }
)
"""Licences that allow use and redistribution with an Apache-2.0 program. MPL-2.0 binds only changes
of its own files, and moorage changes none."""

_CLASSIFIED: Final = {
    "Apache Software License": "Apache-2.0",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
}
"""Licences by classifier, where a classifier tells exactly one. "BSD License" tells none."""

_READ: Final = {
    "alabaster": "BSD-3-Clause",
    "colorama": "BSD-3-Clause",
    "contourpy": "BSD-3-Clause",
    "cycler": "BSD-3-Clause",
    "defusedxml": "PSF-2.0",
    # Its wheel is without the one file under the GPL, an editor's mode.
    "docutils": "CC-PDDC AND BSD-2-Clause AND BSD-3-Clause",
    "google-re2": "BSD-3-Clause",
    "grimp": "BSD-2-Clause",
    "import-linter": "BSD-2-Clause",
    "jinja2": "BSD-3-Clause",
    "kiwisolver": "BSD-3-Clause",
    "matplotlib": "PSF-2.0",
    "partd": "BSD-3-Clause",
    "protobuf": "BSD-3-Clause",
    "sphinxcontrib-applehelp": "BSD-2-Clause",
    "sphinxcontrib-devhelp": "BSD-2-Clause",
    "sphinxcontrib-htmlhelp": "BSD-2-Clause",
    "sphinxcontrib-jsmath": "BSD-2-Clause",
    "sphinxcontrib-qthelp": "BSD-2-Clause",
    "sphinxcontrib-serializinghtml": "BSD-2-Clause",
    "uvloop": "MIT OR Apache-2.0",
    "zict": "BSD-3-Clause",
}
"""Licences read in the files of packages whose metadata names none by its SPDX id."""


Scope: TypeAlias = Literal["required", "optional", "excluded"]
"""Needed at run time, by an extra, or for development only; the words of CycloneDX."""


class Package(msgspec.Struct, frozen=True, omit_defaults=True):
    """A locked package.

    Parameters
    ----------
    licence
        An SPDX expression; "" where the metadata names none.
    requires
        The locked packages that it needs, on some platform; by extra, "" for no extra.
    """

    licence: str
    requires: dict[str, list[str]] = {}


class Locked(msgspec.Struct, frozen=True):
    """An entry of a lock: name, version and the SHA-256 of each of its files."""

    name: str
    version: str
    sha256: tuple[str, ...]

    @property
    def pin(self) -> str:
        """Name and version, as a lock has them."""
        return f"{self.name}=={self.version}"


class Vendored(msgspec.Struct, frozen=True):
    """A package whose files are part of moorage."""

    package: str
    version: str
    licence: str
    from_: str = msgspec.field(name="from")
    sha256: str


def locked(path: Path = LOCK) -> list[Locked]:
    """Return the entries of a lock; a package may have several, for different Pythons."""
    found = _BLOCK.finditer(path.read_text(encoding="utf-8"))
    return [
        Locked(canonicalize_name(each["name"]), each["version"], tuple(_HASH.findall(each["rest"])))
        for each in found
    ]


def recorded() -> dict[str, Package]:
    """Return the recorded packages by ``name==version``."""
    return msgspec.json.decode(RECORD.read_bytes(), type=dict[str, Package])


def vendored() -> list[Vendored]:
    """Return the packages whose files are part of moorage."""
    return msgspec.json.decode(VENDORED.read_bytes(), type=list[Vendored])


def reachable(wanted: Iterable[str], packages: Mapping[str, Package]) -> set[str]:
    """Return the names of all packages that requirements bring along, on some platform.

    Parameters
    ----------
    wanted
        Requirements, as ``pyproject.toml`` writes them.
    packages
        The locked packages by ``name==version``.
    """
    by_name: dict[str, list[Package]] = {}
    for pin, package in packages.items():
        by_name.setdefault(pin.partition("==")[0], []).append(package)
    found: set[tuple[str, str]] = set()
    waiting = [*wanted]
    while waiting:
        requirement = Requirement(waiting.pop())
        name = canonicalize_name(requirement.name)
        for extra in {"", *requirement.extras}:
            if (name, extra) not in found:
                found.add((name, extra))
                for package in by_name.get(name, ()):
                    waiting += package.requires.get(extra, ())
    return {name for name, _ in found}


def scopes(packages: Mapping[str, Package]) -> dict[str, Scope]:
    """Return the scope of each package by name; of several the one that says most.

    Parameters
    ----------
    packages
        The locked packages by ``name==version``.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras: dict[str, list[str]] = project["optional-dependencies"]
    found: dict[str, Scope] = dict.fromkeys(
        (pin.partition("==")[0] for pin in packages), "excluded"
    )
    for name, wanted in extras.items():
        if name != "dev":
            found |= dict.fromkeys(reachable(wanted, packages), "optional")
    return found | dict.fromkeys(reachable(project["dependencies"], packages), "required")


def faults(packages: Mapping[str, Package], pins: Iterable[str]) -> list[str]:
    """Return a line for each locked package without a licence that is known and allowed."""
    from license_expression import get_spdx_licensing

    known, found = get_spdx_licensing(), list[str]()
    for pin in sorted(pins):
        package = packages.get(pin)
        if package is None:
            found.append(f"{pin}: not recorded: run make licences")
            continue
        read = known.parse(package.licence) if package.licence else None
        if read is None:
            found.append(
                f"{pin}: unknown licence: read its files, and add it to tools/release/packages.py"
            )
        elif not _is_allowed(read):
            found.append(f"{pin}: {package.licence} is not allowed")
    return found


def _is_allowed(read: object) -> bool:
    """Whether every licence that counts is allowed; of alternatives one is enough."""
    operator = getattr(read, "operator", "").strip()
    if not operator:
        return str(read) in ALLOWED
    parts = [_is_allowed(each) for each in getattr(read, "args", ())]
    return any(parts) if operator == "OR" else all(parts)


def described(metadata: Message, names: set[str]) -> Package:
    """Return what the metadata of a package says.

    Parameters
    ----------
    metadata
        The headers of its ``METADATA``.
    names
        The names of all locked packages.
    """
    requires: dict[str, set[str]] = {}
    for text in metadata.get_all("Requires-Dist") or ():
        requirement = Requirement(text)
        if canonicalize_name(requirement.name) not in names:
            continue
        extras = f"[{','.join(sorted(requirement.extras))}]" if requirement.extras else ""
        needed = canonicalize_name(requirement.name) + extras
        for extra in _EXTRA.findall(str(requirement.marker or "")) or [""]:
            requires.setdefault(extra, set()).add(needed)
    return Package(
        licence_of(metadata), {extra: sorted(requires[extra]) for extra in sorted(requires)}
    )


def licence_of(metadata: Message) -> str:
    """Return the SPDX expression of a package's licence, "" where it is not known."""
    name = canonicalize_name(metadata["Name"])
    if expression := metadata["License-Expression"]:
        return str(expression)
    if name in _READ:
        return _READ[name]
    classifiers = metadata.get_all("Classifier") or ()
    told = {each.rpartition(" :: ")[2] for each in classifiers if each.startswith("License ::")}
    if len(told & _CLASSIFIED.keys()) == 1:
        return _CLASSIFIED[(told & _CLASSIFIED.keys()).pop()]
    text = str(metadata["License"] or "")
    return text if text in ALLOWED else ""


def _metadata(each: Locked) -> Message:
    """Return the metadata of a locked package: of this environment, or fetched."""
    try:
        found = distribution(each.name)
    except PackageNotFoundError:
        pass
    else:
        if found.version == each.version:
            return HeaderParser().parsestr(found.read_text("METADATA") or "")
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", folder]
        command += ["--only-binary=:all:", "--python-version", "3.13", each.pin]
        subprocess.run(command, check=True, capture_output=True)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            (path,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            return HeaderParser().parsestr(archive.read(path).decode())


def main() -> int:
    """Record the packages of the lock."""
    entries = locked()
    names = {each.name for each in entries}
    packages = {each.pin: described(_metadata(each), names) for each in entries}
    body = msgspec.json.encode(dict(sorted(packages.items())))
    RECORD.write_bytes(msgspec.json.format(body, indent=1) + b"\n")
    found = faults(packages, packages)
    for line in found:
        print(line, file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
