"""How long a deleted pod goes on: preStop hooks, grace period, the pod's own word."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import from_dict
from moorage.api.pod import Pod
from moorage.nodeshapes.stopping import stopping_seconds


def pod(*hooks: dict[str, Any] | None, stop: str = "", sidecar: int = 0) -> Pod:
    """A pod with a container for each hook; with a sidecar that sleeps, if told so."""
    containers = [
        {"name": f"c{number}", **({"lifecycle": {"preStop": hook}} if hook else {})}
        for number, hook in enumerate(hooks)
    ]
    spec: dict[str, Any] = {"containers": containers}
    if sidecar:
        hook = {"preStop": {"sleep": {"seconds": sidecar}}}
        spec["initContainers"] = [{"name": "s", "restartPolicy": "Always", "lifecycle": hook}]
    annotations = {"moorage.dev/stop-seconds": stop} if stop else {}
    return from_dict(Pod, {"metadata": {"annotations": annotations}, "spec": spec})


def sleep(seconds: int) -> dict[str, Any]:
    return {"sleep": {"seconds": seconds}}


@pytest.mark.parametrize(
    ("deleted", "grace", "seconds"),
    [
        pytest.param(pod(None), 30, 1, id="a container without hook takes a second"),
        pytest.param(pod(sleep(79)), 80, 80, id="the hook runs first, then the container stops"),
        pytest.param(pod(sleep(20)), 80, 21, id="a short hook does not use up the grace period"),
        pytest.param(pod(sleep(100)), 80, 81, id="the hook ends with the grace period"),
        pytest.param(
            pod(sleep(79), stop="600"),
            80,
            81,
            id="after a hook the container has two seconds even where the grace is over",
        ),
        pytest.param(pod(sleep(20), stop="600"), 80, 80, id="the rest of the grace is the bound"),
        pytest.param(pod(None, stop="600"), 30, 30, id="the grace period is the bound"),
        pytest.param(pod(None, stop="600"), 1, 2, id="a container has at least two seconds"),
        pytest.param(pod(None, stop="600"), 0, 2, id="a grace of zero counts as one second"),
        pytest.param(pod(sleep(60)), 0, 2, id="a hook has one second where the grace is zero"),
        pytest.param(pod(None, stop="0"), 30, 0, id="a pod may say that it stops at once"),
        pytest.param(pod(sleep(5), sleep(9)), 30, 10, id="containers stop side by side"),
        pytest.param(pod(None, sidecar=12), 30, 13, id="the hook of a sidecar counts"),
        pytest.param(
            pod({"exec": {"command": ["sleep", "20"]}}), 30, 1, id="a command takes no time"
        ),
        pytest.param(pod({"httpGet": {"port": 80}}), 30, 1, id="a call takes no time"),
    ],
)
def test_a_deleted_pod_stops_after_the_time_its_grace_allows(deleted, grace, seconds):
    assert stopping_seconds(deleted, grace)[0] == seconds
