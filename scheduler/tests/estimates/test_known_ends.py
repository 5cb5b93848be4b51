"""When a pod ends, by its own fields and by the Job that owns the pod."""

from __future__ import annotations

import msgspec
import pytest

from moorage.api.pod import Pod
from moorage.api.workloads import Job, JobSpec, JobStatus
from moorage.estimates.known_ends import known_end_ns
from moorage_sandbox.testing.builders import pod

SECOND = 10**9
NOW = 1_000 * SECOND
STARTED = "1970-01-01T00:15:00Z"  # 900 s


def running(text: str = "", *, restart: str = "Never", deadline: int | None = None) -> Pod:
    made = pod("p", annotations={"moorage.dev/run-seconds": text} if text else {})
    spec = msgspec.structs.replace(
        made.spec, restart_policy=restart, active_deadline_seconds=deadline
    )
    status = msgspec.structs.replace(made.status, start_time=STARTED)
    return msgspec.structs.replace(made, spec=spec, status=status)


def job(seconds: int | None, *, started: str | None = STARTED) -> Job:
    return Job(spec=JobSpec(active_deadline_seconds=seconds), status=JobStatus(start_time=started))


CASES = [
    pytest.param(running(), None, None, id="nothing tells"),
    pytest.param(running("30"), None, 930, id="run-seconds after the start"),
    pytest.param(running("30.5"), None, 930.5, id="a fraction of a second"),
    pytest.param(running("30", restart="Always"), None, None, id="a pod that is restarted"),
    pytest.param(running("30", restart="OnFailure"), None, 930, id="a pod restarted on failure"),
    pytest.param(running("soon"), None, None, id="no number"),
    pytest.param(running("nan"), None, None, id="not a number"),
    pytest.param(running("-1"), None, None, id="a negative number"),
    pytest.param(running(deadline=60, restart="Always"), None, 960, id="the pod's deadline"),
    pytest.param(running("90", deadline=60), None, 960, id="the earlier end counts"),
    pytest.param(running("90"), job(20), 920, id="the deadline of the Job"),
    pytest.param(running("90"), job(None), 990, id="a Job without a deadline"),
    pytest.param(running(), job(20, started=None), 1020, id="a Job that starts now"),
    pytest.param(pod("p", activeDeadlineSeconds=7), None, 1007, id="a pod that starts now"),
]


@pytest.mark.parametrize(("made", "owner", "expected_seconds"), CASES)
def test_the_known_end_of_a_pod_follows_from_deadlines(
    made: Pod, owner: Job | None, expected_seconds: float | None
):
    expected = None if expected_seconds is None else round(expected_seconds * SECOND)
    assert known_end_ns(made, owner, now_ns=NOW) == expected
