"""The scripts and styles of the page: their types checked by tsc, their form and faults by Biome.

Place in the flow: test support only. Both programs come out of npm packages as they are, without
Node.js, and are pinned by their hashes (linux/amd64). tsc reads the types of libraries from the
packages that ``vendored.json`` names. By hand: ``make page-fmt`` writes the scripts in their form.
"""

from __future__ import annotations

import fcntl
import json
import shutil
import subprocess
import sys
import tarfile
from io import BytesIO
from pathlib import Path
from typing import Final, NamedTuple

import moorage.dashboard
from tests.browser.install import CACHE, Package, check_platform, fetched, member, put

ROOM: Final = Path(moorage.dashboard.__file__).parent
STATIC: Final = ROOM / "static"
OWN: Final = (STATIC / "js", STATIC / "page.css")
SECONDS_MAX: Final = 120

TSC: Final = Package(
    "@typescript/typescript-linux-x64/-/typescript-linux-x64-7.0.2.tgz",
    "7ecad6f67377e831856367ab062ef394f21506a611405bf8ac0ff039348637d3",
)
BIOME: Final = Package(
    "@biomejs/cli-linux-x64/-/cli-linux-x64-2.6.8.tgz",
    "e9fc491ffec6ba4024549b7c797937cd4f01855b4fe66a78220efe83b95be7f1",
)
TYPES: Final = {
    "compilerOptions": {
        "allowJs": True,
        "checkJs": True,
        "strict": True,
        "noEmit": True,
        "target": "es2022",
        "module": "es2022",
        "moduleResolution": "bundler",
        "lib": ["es2023", "dom", "dom.iterable"],
        "types": [],
        "noUnusedLocals": True,
        "noUnusedParameters": True,
        "skipLibCheck": True,
    },
    "include": ["js"],
}
FORM: Final = {
    "formatter": {"indentStyle": "space", "lineWidth": 120},
    "linter": {"rules": {"preset": "recommended"}},
}


class Programs(NamedTuple):
    """The programs that check scripts.

    Parameters
    ----------
    tsc, biome
        The programs.
    types
        The folder of the types of libraries, laid out as ``static/vendor``.
    """

    tsc: Path
    biome: Path
    types: Path


def programs(cache: Path = CACHE) -> Programs:
    """Return the programs, fetching them if need be.

    Raises
    ------
    NoBrowserError
        The platform is not linux/amd64, or a package could not be downloaded.
    """
    check_platform("tsc and Biome")
    found = Programs(
        cache / "typescript-7.0.2" / "package" / "lib" / "tsc",
        cache / "biome-2.6.8",
        cache / "types-of-libraries",
    )
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # parallel test workers fetch them once
        if not found.biome.exists():
            put(found.biome, member(fetched(BIOME), "package/biome"), 0o755)
        if not found.tsc.exists():
            _unpack(fetched(TSC), found.tsc.parents[2], "package/lib/")
            found.tsc.chmod(0o755)
        for each in json.loads((ROOM / "vendored.json").read_text()):
            folder = found.types / f"{each['package']}-{each['version']}"
            if not folder.exists():
                path = each["from"].removeprefix("https://registry.npmjs.org/")
                _unpack(fetched(Package(path, each["sha256"])), folder, "package/", ".d.ts")
    return found


def faults_of_types(found: Programs, scratch: Path) -> str:
    """Return what tsc says of the scripts; "" for nothing.

    Parameters
    ----------
    scratch
        An empty folder, which gets the scripts and the types of the libraries.
    """
    shutil.copytree(STATIC / "js", scratch / "js")
    for each in json.loads((ROOM / "vendored.json").read_text()):
        folder = found.types / f"{each['package']}-{each['version']}" / "package"
        shutil.copytree(folder, scratch / "vendor" / each["package"])
    (scratch / "tsconfig.json").write_text(json.dumps(TYPES))
    return _said([found.tsc, "-p", "."], scratch)


def faults_of_form(found: Programs, scratch: Path, *, fix: bool = False) -> str:
    """Return what Biome says of the scripts and styles; "" for nothing.

    Parameters
    ----------
    scratch
        A folder for its configuration.
    fix
        Whether to write them in their form.
    """
    (scratch / "biome.json").write_text(json.dumps(FORM))
    words = ["check", "--error-on-warnings", f"--config-path={scratch}", *(["--write"] * fix)]
    return _said([found.biome, *words, *OWN], STATIC)


def _said(command: list[Path | str], folder: Path) -> str:
    """Return the output of a program that failed; "" of one that did not."""
    done = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=SECONDS_MAX,
    )
    return f"{done.stdout}{done.stderr}" if done.returncode else ""


def _unpack(package: bytes, folder: Path, below: str, suffix: str = "") -> None:
    """Unpack files of a package; the folder is there as a whole, or not at all."""
    part = folder.with_name(f"{folder.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    with tarfile.open(fileobj=BytesIO(package), mode="r:gz") as archive:
        wanted = [
            each
            for each in archive.getmembers()
            if each.name.startswith(below) and each.name.endswith(suffix)
        ]
        archive.extractall(part, members=wanted, filter="data")
    part.replace(folder)


def main() -> None:
    """Write the scripts in their form, and print what is left to fix."""
    found = programs()
    scratch = CACHE / "form"
    scratch.mkdir(exist_ok=True)
    sys.stdout.write(faults_of_form(found, scratch, fix=True))


if __name__ == "__main__":
    main()
