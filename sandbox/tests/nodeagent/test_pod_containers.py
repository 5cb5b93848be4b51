"""Containers of one pod over time: order of init containers, restarts, readiness, phase."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import from_dict
from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND
from moorage_sandbox.nodeagent.pod_containers import PodContainers, Seat, is_ready, waits_for_retry

START_NS = 1_000 * NS_PER_SECOND


def pod(spec: dict[str, Any], **say: str) -> Pod:
    annotations = {
        f"moorage.dev/{key.replace('_', '-').replace('--', '.')}": value
        for key, value in say.items()
    }
    return from_dict(Pod, {"metadata": {"annotations": annotations}, "spec": spec})


def timeline(played: Pod, *, until: int) -> list[tuple[int, str, str]]:
    """Second, phase and one letter for each container, whenever that changes.

    ``.`` never ran, ``r`` runs, ``R`` is ready, ``c`` waits for its next run; ``+`` ended with 0
    and ``-`` with another code, for good.
    """
    containers, now_ns, seen = PodContainers(played), START_NS, list[tuple[int, str, str]]()
    while now_ns <= START_NS + until * NS_PER_SECOND:
        containers.advance(played, now_ns)
        seats = containers.seats(played)
        line = containers.phase(played), "".join(letter(played, seat, now_ns) for seat in seats)
        if not seen or seen[-1][1:] != line:
            seen.append(((now_ns - START_NS) // NS_PER_SECOND, *line))
        due_ns = containers.next_due_ns(played, now_ns)
        if due_ns is None or line[0] in ("Succeeded", "Failed"):
            break
        now_ns = due_ns
    return seen


def letter(played: Pod, seat: Seat, now_ns: int) -> str:
    """Where a container stands, see `timeline`."""
    if seat.run.is_waiting:
        return "."
    if seat.run.is_running:
        return "R" if is_ready(played, seat, now_ns) else "r"
    if waits_for_retry(played, seat):
        return "c"
    return "-" if seat.run.ended and seat.run.ended.exit_code else "+"


ONE = {"containers": [{"name": "main"}]}
TWO = {"containers": [{"name": "a"}, {"name": "b"}]}
INIT = {"initContainers": [{"name": "one"}, {"name": "two"}], **ONE}
SIDECAR = {"initContainers": [{"name": "side", "restartPolicy": "Always"}, {"name": "i"}], **ONE}


@pytest.mark.parametrize(
    ("played", "expected"),
    [
        pytest.param(pod(ONE), [(0, "Running", "R")], id="a container runs for ever"),
        pytest.param(
            pod({**ONE, "restartPolicy": "Never"}, run_seconds="5"),
            [(0, "Running", "R"), (5, "Succeeded", "+")],
            id="a container that ends well succeeds",
        ),
        pytest.param(
            pod({**ONE, "restartPolicy": "OnFailure"}, run_seconds="5", exit_code="1,1,0"),
            [
                (0, "Running", "R"),
                (10, "Running", "c"),
                (20, "Running", "R"),
                (25, "Succeeded", "+"),
            ],
            id="a container that fails twice runs three times",
        ),
        pytest.param(
            pod(ONE, run_seconds="5,5,1000"),
            [(0, "Running", "R"), (10, "Running", "c"), (20, "Running", "R")],
            id="a container that ends well runs again where the policy is Always",
        ),
        pytest.param(
            pod({**TWO, "restartPolicy": "Never"}, run_seconds__a="5", run_seconds__b="9"),
            [(0, "Running", "RR"), (5, "Running", "+R"), (9, "Succeeded", "++")],
            id="a pod runs as long as its last container",
        ),
        pytest.param(
            pod({**TWO, "restartPolicy": "Never"}, run_seconds="5", exit_code__b="2"),
            [(0, "Running", "RR"), (5, "Failed", "+-")],
            id="one container that fails makes the pod fail",
        ),
        pytest.param(
            pod(ONE, startup_seconds="3", ready_seconds="7"),
            [(0, "Running", "r"), (7, "Running", "R")],
            id="a container becomes ready after its delay",
        ),
        pytest.param(
            pod(ONE, startup_seconds="9", ready_seconds="7"),
            [(0, "Running", "r"), (9, "Running", "R")],
            id="a container is not ready before it is started",
        ),
        pytest.param(
            pod({"containers": [{"name": "m", "readinessProbe": {"initialDelaySeconds": 4}}]}),
            [(0, "Running", "r"), (4, "Running", "R")],
            id="the delay of a readiness probe counts",
        ),
        pytest.param(pod(INIT), [(0, "Running", "++R")], id="init containers end at once"),
        pytest.param(
            pod(INIT, run_seconds__one="2", run_seconds__two="3"),
            [(0, "Pending", "R.."), (2, "Pending", "+R."), (5, "Running", "++R")],
            id="init containers run one after another",
        ),
        pytest.param(
            pod({**INIT, "restartPolicy": "Never"}, exit_code__two="1"),
            [(0, "Failed", "+-.")],
            id="an init container that fails makes the pod fail",
        ),
        pytest.param(
            pod(INIT, exit_code__one="1,1,0"),
            [(0, "Pending", "c.."), (10, "Running", "++R")],
            id="an init container that fails runs again",
        ),
        pytest.param(
            pod(SIDECAR, startup_seconds__side="3", run_seconds__i="2"),
            [(0, "Pending", "r.."), (3, "Pending", "RR."), (5, "Running", "R+R")],
            id="containers after a sidecar wait until the sidecar is started",
        ),
        pytest.param(
            pod({**SIDECAR, "restartPolicy": "Never"}, run_seconds="5"),
            [(0, "Running", "R+R"), (5, "Succeeded", "R++")],
            id="a sidecar does not hold up the end of the pod",
        ),
        pytest.param(
            pod({**SIDECAR, "restartPolicy": "Never"}, run_seconds__side="4", run_seconds="9"),
            [(0, "Running", "R+R"), (8, "Running", "c+R"), (9, "Succeeded", "c++")],
            id="a sidecar runs again whatever the policy of the pod",
        ),
    ],
)
def test_containers_change_state_over_time(played, expected):
    assert timeline(played, until=60) == expected
