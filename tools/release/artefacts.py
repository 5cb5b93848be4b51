"""The files of a release besides wheels and sdists: archives, checksums and their provenance.

Equal commits have equal bytes: archives name no time and no user.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from tools.release.repository import address, git, image_repository

CHECKSUMS: Final = "SHA256SUMS"
_IMAGE: Final = (
    "LICENSE",
    "deploy/Containerfile",
    "deploy/Containerfile.dockerignore",
    "deploy/build.lock",
    "deploy/requirements.lock",
    "scheduler",
)
_VALUES: Final = "deploy/chart/values.yaml"
_LOCAL_IMAGE: Final = b"\n  repository: moorage\n"
_LOCKS: Final = ("requirements.lock", "deploy/requirements.lock", "deploy/build.lock")
_STATEMENT: Final = "https://in-toto.io/Statement/v1"
_PROVENANCE: Final = "https://slsa.dev/provenance/v1"


def write_artefacts(root: Path, version: str, target: Path) -> list[str]:
    """Write the build context of the image, the chart and the licences; return their names.

    Parameters
    ----------
    root
        The checkout; only files that are committed count.
    version
        ``MAJOR.MINOR.PATCH``.
    target
        The folder.
    """
    image, chart = f"moorage-{version}-image-context.tar.gz", f"moorage-{version}.tgz"
    _write_archive(target / image, "", root, _tracked(root, _IMAGE))
    _write_archive(
        target / chart,
        "moorage",
        root / "deploy/chart",
        _tracked(root, ["deploy/chart"]),
        changed={root / _VALUES: _values_of_release(root)},
    )
    licences = f"moorage-{version}-licences.md"
    (target / licences).write_bytes((root / "docs/reference/licences.md").read_bytes())
    return [image, chart, licences]


def digests(target: Path, names: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of files by name, in the order of the names."""
    return {
        name: hashlib.sha256((target / name).read_bytes()).hexdigest() for name in sorted(names)
    }


def write_provenance(root: Path, version: str, target: Path, files: Mapping[str, str]) -> str:
    """Write from what the files were made, as an in-toto statement without signature.

    The workflow of a release signs a statement of its own; this one is for builds by hand. Returns
    the name of the file.

    Parameters
    ----------
    root
        The checkout, at the release's commit.
    version
        ``MAJOR.MINOR.PATCH``.
    target
        The folder.
    files
        The SHA-256 of each file, by name.
    """
    commit = git(root, "rev-parse", "HEAD")
    source = f"git+{address(root)}@refs/tags/v{version}"
    locks = digests(root, _LOCKS)
    statement: dict[str, Any] = {
        "_type": _STATEMENT,
        "subject": [{"name": name, "digest": {"sha256": each}} for name, each in files.items()],
        "predicateType": _PROVENANCE,
        "predicate": {
            "buildDefinition": {
                "buildType": f"{address(root)}/blob/v{version}/tools/release/cut.py",
                "externalParameters": {"version": version},
                "resolvedDependencies": [
                    {"uri": source, "digest": {"gitCommit": commit}},
                    *({"name": name, "digest": {"sha256": each}} for name, each in locks.items()),
                ],
            },
            "runDetails": {"builder": {"id": f"{address(root)}#make-release"}},
        },
    }
    name = f"moorage-{version}.intoto.json"
    (target / name).write_text(json.dumps(statement, indent=1) + "\n")
    return name


def write_checksums(target: Path, files: Mapping[str, str]) -> None:
    """Write the digests in the form that ``sha256sum --check`` reads."""
    text = "".join(f"{digest}  {name}\n" for name, digest in sorted(files.items()))
    (target / CHECKSUMS).write_text(text)


def _values_of_release(root: Path) -> bytes:
    """Return the chart's values with the image that the workflow of a release publishes."""
    values = (root / _VALUES).read_bytes()
    assert values.count(_LOCAL_IMAGE) == 1, f"{_VALUES}: the image's repository is not found"
    published = f"\n  repository: {image_repository(root)}\n".encode()
    return values.replace(_LOCAL_IMAGE, published)


def _tracked(root: Path, paths: Iterable[str]) -> list[Path]:
    return [root / name for name in sorted(git(root, "ls-files", "--", *paths).splitlines())]


def _write_archive(
    path: Path,
    prefix: str,
    base: Path,
    files: Iterable[Path],
    *,
    changed: Mapping[Path, bytes] = MappingProxyType({}),
) -> None:
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for each in files:
            entry = tarfile.TarInfo((Path(prefix) / each.relative_to(base)).as_posix())
            data = changed.get(each, b"") or each.read_bytes()
            entry.size, entry.mode = len(data), 0o755 if each.stat().st_mode & 0o100 else 0o644
            archive.addfile(entry, io.BytesIO(data))
    path.write_bytes(gzip.compress(content.getvalue(), mtime=0))
