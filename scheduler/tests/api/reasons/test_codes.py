"""The closed vocabulary: every message of every in-tree plugin has one code.

Messages come from the table that ``tests/test_plugin_pages.py`` holds equal to the plugins' source.
"""

from __future__ import annotations

import pytest

from moorage.api.reasons.codes import ReasonCode, code_of_message, code_of_reason
from tools.pages.plugin_messages import REMEDIES

NO_REASON = frozenset(
    {
        # of PostFilter, which runs after the rejection
        "no new claims to deallocate",
        "still not schedulable",
        "deallocation of ResourceClaim completed",
        "deletion of ResourceClaim completed",
        "not eligible due to preemptionPolicy=Never.",
        "not eligible due to nominated pods that are not placed yet.",
        "Preemption is not helpful for scheduling",
        "No preemption victims found for incoming pod",
        "No preemption victims found: gangs on the node cannot be evicted as a whole",
        "no candidate node for preemption",
        "not eligible due to placement-based pod group scheduling limitation",
        "not eligible due to workload aware preemption enabled",
        "No preemption victims found for incoming preemptor",
        "no nodes available",
        'expected at least one victim pod on node "<name>"',
        "not eligible due to terminating pods that still count in the quotas.",
        "not eligible due to failed to read from cycleState",
        "No victims found on node <node> for preemptor pod <pod>",
        # of the start, and of the log
        "<plugin> and <plugin> both choose GPUs: enable one of them",
        "<plugin> scores the GPUs that GpuShare counts: enable GpuShare",
        'priorityclass.scheduling.k8s.io "<name>" not found',
        "PriorityClass %s tolerates no preemption: %s",
        "annotation <domain>/<key>: <text> is no whole number",
        "annotation <domain>/<key>: <text> has more than <n> bits",
    }
)
MESSAGES = sorted({text for plugin in REMEDIES.values() for text in plugin})


@pytest.mark.parametrize("text", MESSAGES)
def test_every_message_of_a_plugin_that_is_a_reason_has_a_code_of_its_own(text: str) -> None:
    told = text.replace("<resource>", "example.com/chip").replace("<ElasticQuota>", "quota")
    assert (code_of_reason(told) is ReasonCode.REJECTED_BY_PLUGIN) == (text in NO_REASON)


def test_every_code_of_a_plugin_has_a_message() -> None:
    """Codes of what no in-tree plugin says in one text are the only ones without a message."""
    codes = {code_of_reason(text) for text in MESSAGES}
    assert set(ReasonCode) - codes == {
        ReasonCode.NOT_TRIED,
        ReasonCode.UNKNOWN_SCHEDULER,
        ReasonCode.NO_NODES,
        ReasonCode.CPU,
        ReasonCode.MEMORY,
        ReasonCode.EPHEMERAL_STORAGE,
        ReasonCode.EXTENDER,
        ReasonCode.SCHEDULER_ERROR,
    }


@pytest.mark.parametrize(
    ("message", "code"),
    [
        pytest.param("", "NotTriedYet", id="not tried"),
        pytest.param("no nodes available to schedule pods", "NoNodes", id="no nodes"),
        pytest.param(
            "0/5 nodes are available: 1 Insufficient memory, 2 node(s) had untolerated taint(s), "
            "2 Insufficient cpu. preemption: 0/5 nodes are available: 5 Preemption is not helpful "
            "for scheduling.",
            "InsufficientCPU",
            id="the reason that is met last",
        ),
        pytest.param(
            "0/9 nodes are available: 9 node(s) had untolerated taint {team: a}. preemption: not "
            "eligible due to preemptionPolicy=Never.",
            "UntoleratedTaint",
            id="an older kube-scheduler's taint",
        ),
        pytest.param(
            "0/3 nodes are available: 3 Insufficient nvidia.com/gpu. No preemption victims found "
            "for incoming pod.",
            "InsufficientGPU",
            id="GPUs",
        ),
        pytest.param(
            "spec.schedulerName is x, and no profile has that name (there are: y)",
            "UnknownScheduler",
            id="no profile",
        ),
        pytest.param(
            "0/3 nodes are available: 3 the moon is full.", "RejectedByPlugin", id="of a user"
        ),
        pytest.param(
            'running Reserve plugin "Broken": the books are gone', "SchedulerError", id="an error"
        ),
    ],
)
def test_the_code_of_a_message_is_that_of_the_nearest_reason(message: str, code: str) -> None:
    assert code_of_message(message) == code
