"""Runs of one container: when the next one begins, and whether there is one."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import from_dict
from moorage.api.pod import Container, ContainerStatus, Pod
from moorage.base.clock import NS_PER_SECOND, rfc3339
from moorage_sandbox.nodeagent.container_run import ContainerRun, Ending, restarts, taken_up


def backoffs(run_lengths: list[int]) -> list[int]:
    """The seconds between each end and the next start, for runs of these lengths."""
    run, now_ns, found = ContainerRun(), 1_000 * NS_PER_SECOND, []
    for seconds in run_lengths:
        run.start_run(now_ns)
        now_ns += seconds * NS_PER_SECOND
        run.end_run(now_ns, 1)
        assert run.ended
        retry_ns = run.retry_ns(run.ended)
        found.append((retry_ns - now_ns) // NS_PER_SECOND)
        now_ns = retry_ns
    assert run.restarts == len(run_lengths) - 1
    return found


@pytest.mark.parametrize(
    ("run_lengths", "expected"),
    [
        pytest.param(
            [5] * 9,
            [0, 10, 20, 40, 80, 160, 300, 300, 300],
            id="the backoff doubles from 10 seconds to 5 minutes",
        ),
        pytest.param(
            [5, 5, 5, 601, 5, 5],
            [0, 10, 20, 0, 10, 20],
            id="a run of more than ten minutes begins anew",
        ),
        pytest.param([5, 5, 5, 599], [0, 10, 20, 40], id="a run of less than ten minutes does not"),
    ],
)
def test_the_crash_loop_backoff_doubles_up_to_its_maximum(run_lengths, expected):
    assert backoffs(run_lengths) == expected


@pytest.mark.parametrize(
    ("policy", "init", "after_0", "after_1"),
    [
        pytest.param("Always", False, True, True, id="Always"),
        pytest.param("", False, True, True, id="no policy means Always"),
        pytest.param("OnFailure", False, False, True, id="OnFailure"),
        pytest.param("Never", False, False, False, id="Never"),
        pytest.param("Always", True, False, True, id="an init container runs again after failures"),
        pytest.param("Never", True, False, False, id="an init container that may fail once"),
    ],
)
def test_the_restart_policy_of_the_pod_decides_on_a_restart(policy, init, after_0, after_1):
    pod = from_dict(Pod, {"spec": {"restartPolicy": policy}})
    found = [restarts(pod, Container(name="c"), code, init=init) for code in (0, 1)]
    assert found == [after_0, after_1]


def rules(operator: str, *values: int) -> list[dict[str, Any]]:
    return [{"action": "Restart", "exitCodes": {"operator": operator, "values": list(values)}}]


@pytest.mark.parametrize(
    ("container", "init", "codes"),
    [
        pytest.param({"restartPolicy": "Always"}, True, [0, 1, 42], id="a sidecar"),
        pytest.param(
            {"restartPolicy": "OnFailure"}, False, [1, 42], id="the policy of the container"
        ),
        pytest.param(
            {"restartPolicy": "Never", "restartPolicyRules": rules("In", 42)},
            False,
            [42],
            id="a rule for a code",
        ),
        pytest.param(
            {"restartPolicy": "Never", "restartPolicyRules": rules("NotIn", 0, 42)},
            False,
            [1],
            id="a rule for all but some codes",
        ),
        pytest.param(
            {"restartPolicyRules": rules("In", 42)},
            False,
            [],
            id="rules count only beside a policy of the container",
        ),
    ],
)
def test_the_restart_policy_of_the_container_takes_precedence(container, init, codes):
    pod = from_dict(Pod, {"spec": {"restartPolicy": "Never"}})
    spec = from_dict(Container, {"name": "c", **container})
    assert [code for code in (0, 1, 42) if restarts(pod, spec, code, init=init)] == codes


ENDED = {"exitCode": 3, "startedAt": rfc3339(0), "finishedAt": rfc3339(10**10)}
ENDING = Ending(3, 0, 10**10)


@pytest.mark.parametrize(
    ("told", "started_ns", "ended", "last"),
    [
        pytest.param({"waiting": {}}, 0, None, None, id="a container that never ran"),
        pytest.param(
            {"running": {"startedAt": rfc3339(10**9)}},
            10**9,
            None,
            None,
            id="a running container with its start",
        ),
        pytest.param({"running": {}}, 7, None, None, id="a running container without its start"),
        pytest.param({"terminated": ENDED}, 0, ENDING, None, id="an ended container"),
        pytest.param(
            {"running": {"startedAt": rfc3339(10**9)}, "last": ENDED},
            10**9,
            None,
            ENDING,
            id="a restarted container",
        ),
        pytest.param(
            {"waiting": {"reason": "CrashLoopBackOff"}, "last": ENDED},
            0,
            ENDING,
            None,
            id="a container in CrashLoopBackOff",
        ),
    ],
)
def test_runs_are_restored_from_a_status(told, started_ns, ended, last):
    last_state = {"terminated": told.pop("last")} if "last" in told else {}
    status = {"name": "c", "restartCount": 4, "state": told, "lastState": last_state}
    run = taken_up(from_dict(ContainerStatus, status), 7)
    assert (run.restarts, run.started_ns, run.ended, run.last) == (4, started_ns, ended, last)
