"""Objects at the server of a whole cluster, whose controllers lag behind the workload."""

from __future__ import annotations

from typing import Any, cast

import pytest

from moorage.api.resources import ResourceType
from moorage.base.clock import ManualClock
from moorage.base.errors import ApiError
from moorage.bench.scheduler_perf.objects import Objects
from moorage.client.writes import Client
from moorage.testing.virtual_loop import run_virtual

REFUSED = (
    'pods "p" is forbidden: error looking up service account a/default: serviceaccount "default" '
    "not found"
)
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {}}


class Server:
    """Answers creations with an error for some time."""

    def __init__(self, message: str, times: int) -> None:
        self.message = message
        self.left = times

    async def create(
        self, resource: ResourceType, obj: dict[str, Any], *, namespace: str = ""
    ) -> dict[str, Any]:
        """Create an object, or refuse it."""
        if self.left:
            self.left -= 1
            raise ApiError(403, "Forbidden", self.message)
        return obj


def test_a_pod_waits_for_the_service_account_of_its_namespace() -> None:
    clock, server = ManualClock(), Server(REFUSED, times=30)
    made = run_virtual(Objects(cast("Client", server)).create(dict(POD), "a"), clock)
    assert (made["metadata"]["name"], server.left) == ("p", 0)
    assert clock.monotonic_ns() == pytest.approx(3e9)


@pytest.mark.parametrize(
    ("message", "left"),
    [
        pytest.param(REFUSED, 999_799, id="an account that never comes"),
        pytest.param('pods "p" is forbidden: quota', 999_999, id="another reason"),
    ],
)
def test_a_refusal_that_lasts_is_told(message: str, left: int) -> None:
    server = Server(message, times=1_000_000)
    with pytest.raises(ApiError, match="forbidden"):
        run_virtual(Objects(cast("Client", server)).create(dict(POD), "a"), ManualClock())
    assert server.left == left
