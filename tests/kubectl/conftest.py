"""The kubectl fixtures: `kubectl` is the version moorage follows, `any_kubectl` each pinned one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kubectl.install import RELEASES, NoKubectlError, Release, kubectl_path


def _path_or_skip(release: Release) -> Path:
    try:
        return kubectl_path(release)
    except NoKubectlError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def kubectl() -> Path:
    """Path of the newest pinned kubectl; skips with the reason where there is none."""
    return _path_or_skip(RELEASES[0])


@pytest.fixture(scope="session", params=RELEASES, ids=lambda release: f"kubectl {release.version}")
def any_kubectl(request: pytest.FixtureRequest) -> Path:
    """Path of each pinned kubectl in turn; skipped as above."""
    release: Release = request.param
    return _path_or_skip(release)
