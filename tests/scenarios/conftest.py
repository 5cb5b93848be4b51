"""Where a scenario is told: in virtual time, and over HTTPS with its parts apart."""

from __future__ import annotations

from typing import cast

import pytest

from tests.scenarios.gangs import Play, play, play_over_https


@pytest.fixture(
    name="anywhere",
    params=[pytest.param(play, id="virtual time"), pytest.param(play_over_https, id="HTTPS")],
)
def _anywhere(request: pytest.FixtureRequest) -> Play:
    return cast(Play, request.param)


@pytest.fixture(params=[pytest.param(False, id="virtual time"), pytest.param(True, id="HTTPS")])
def https(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)
