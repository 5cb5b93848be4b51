"""An administrator stops and steps the time of a cluster that was started for it; nobody else."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.base.clock import NS_PER_SECOND
from moorage.base.timeline import Timeline
from moorage_sandbox.apiserver.wire.requests import User
from sandbox.tests.apiserver.harness import Cluster

TIME = "/moorage.dev/v1/time"
START_NS = 1_767_225_600 * NS_PER_SECOND
BEGIN = "2026-01-01T00:00:00.000000Z"


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the machine's time, nanoseconds, to be changed by the test."""
    elapsed = [0]
    machine_time = "moorage.base.clock.SystemClock.monotonic_ns"
    monkeypatch.setattr(machine_time, staticmethod(lambda: elapsed[0]))
    return elapsed


@pytest.fixture
def cluster(machine: list[int], tmp_path: Any) -> Cluster:
    cluster = Cluster()
    timeline = Timeline.create_file(tmp_path / "time", START_NS)
    timeline.run(0)
    cluster.server.control_time(timeline)
    return cluster


async def test_cluster_time_is_stepped_and_run_by_calls(
    cluster: Cluster, machine: list[int]
) -> None:
    assert await cluster.ok("GET", TIME) == {"now": BEGIN, "speed": 0.0}
    assert await cluster.ok("POST", TIME, {"step": 90, "speed": 30}) == {
        "now": BEGIN,
        "speed": 30.0,
        "until": "2026-01-01T00:01:30.000000Z",
    }
    machine[0] += 5 * NS_PER_SECOND
    stepped = {"now": "2026-01-01T00:01:30.000000Z", "speed": 0.0}
    assert await cluster.ok("GET", TIME) == stepped
    assert await cluster.ok("POST", TIME, {"speed": 60}) == {**stepped, "speed": 60.0}
    machine[0] += NS_PER_SECOND
    stopped = {"now": "2026-01-01T00:02:30.000000Z", "speed": 0.0}
    assert await cluster.ok("POST", TIME, {"speed": 0}) == stopped


@pytest.mark.parametrize(
    ("method", "body", "user", "status", "message"),
    [
        pytest.param(
            "POST",
            {"speed": 1},
            User("jane"),
            403,
            "only system:masters may change the time",
            id="a user who is no administrator",
        ),
        pytest.param("GET", None, None, 401, "Unauthorized", id="a stranger does not see it"),
        pytest.param(
            "POST",
            {"speed": 0.5},
            None,
            400,
            "speed: must be 0, or between 1 and 1000",
            id="too slow",
        ),
        pytest.param(
            "POST",
            {"speed": 0, "step": 5},
            None,
            400,
            "speed: must be 0, or between 1 and 1000",
            id="a step takes time",
        ),
        pytest.param(
            "POST",
            {"speed": 20, "step": -1},
            None,
            400,
            "step: must be more than 0 and at most 31622400 seconds",
            id="backwards",
        ),
        pytest.param(
            "POST",
            {"speed": 20, "stop": 1},
            None,
            400,
            "not a change of time: Object contains unknown field `stop`",
            id="an unknown field",
        ),
    ],
)
async def test_faulty_and_unauthorized_changes_of_time_are_refused(
    cluster, method, body, user, status, message
):
    stranger = method == "GET"
    options = {"user": user} if user is not None or stranger else {}
    found = await cluster.call(method, TIME, body, **options)
    assert (found[0], found[1]["message"]) == (status, message)


async def test_the_time_of_an_ordinary_cluster_cannot_be_changed() -> None:
    status, found = await Cluster().call("GET", TIME)
    assert (status, found["message"]) == (
        409,
        "the time of this cluster cannot be changed; start it with `moorage up --speed 0`",
    )
