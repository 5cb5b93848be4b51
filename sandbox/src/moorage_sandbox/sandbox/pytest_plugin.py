"""Fixtures of pytest for tests that need a cluster; pytest finds this module by its entry point."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from moorage_sandbox.sandbox.in_python import Sandbox

_MARKER = "moorage_sandbox(**options): options of the test's sandbox, as moorage.Sandbox takes them"


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", _MARKER)


@pytest.fixture(scope="session")
def moorage_sandbox_options() -> dict[str, Any]:
    """Return the options of every sandbox, as `moorage.Sandbox` takes them; to be overridden."""
    return {}


@pytest.fixture(scope="session")
def moorage_session_sandbox(moorage_sandbox_options: dict[str, Any]) -> Iterator[Sandbox]:
    """Return a cluster that the tests of a session share."""
    from moorage_sandbox.sandbox.in_python import Sandbox

    with Sandbox(**moorage_sandbox_options) as sandbox:
        yield sandbox


@pytest.fixture
def moorage_sandbox(
    request: pytest.FixtureRequest, moorage_sandbox_options: dict[str, Any]
) -> Iterator[Sandbox]:
    """Return a cluster of the test's own; the marker ``moorage_sandbox`` gives it options."""
    from moorage_sandbox.sandbox.in_python import Sandbox

    options = dict(moorage_sandbox_options)
    for marker in reversed(list(request.node.iter_markers("moorage_sandbox"))):
        options |= marker.kwargs
    with Sandbox(**options) as sandbox:
        yield sandbox
