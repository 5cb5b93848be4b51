"""The tables of ``moorage queue``, whole; the scheduler's answers are written by hand."""

from __future__ import annotations

import msgspec
import pytest

from moorage.base.errors import MoorageError
from moorage.cli.queue.text import duration, lines, narrowed, read_answer, remarks
from moorage.service.questions.answers import (
    QueueAnswer,
    QueuedGroup,
    QueuedPod,
    QueueSizes,
    WakingEvents,
)

SIZES = QueueSizes(active=2, in_flight=0, backoff=1, unschedulable=1, gated=1, permit=1, binding=1)


def pod(queue, name: str, **fields) -> QueuedPod:
    fields.setdefault("since", "2026-01-01T00:00:00.000000Z")
    return QueuedPod(
        queue=queue,
        namespace="team" if queue == "gated" else "default",
        name=name,
        uid=f"uid-{name}",
        scheduler_name="default-scheduler",
        **fields,
    )


GATE = WakingEvents("SchedulingGates", ("PodUpdatePodSchedulingGatesEliminated",))
ANSWER = QueueAnswer(
    time="2026-01-01T00:01:05.500000Z",
    scheduling=True,
    sizes=SIZES,
    pods=(
        pod("active", "first", attempts=0, position=1, priority=7),
        pod("active", "second", attempts=2, position=2, message="0/1 nodes are available."),
        pod("backoff", "late", attempts=1, seconds_left=1.4, may_be_early=True, message="no room"),
        pod("unschedulable", "giant", attempts=3, seconds_left=252, plugins=("Fit",)),
        pod(
            "gated",
            "held",
            attempts=0,
            plugins=("SchedulingGates",),
            message="waiting for scheduling gates: [a]",
            woken_by=(GATE,),
        ),
        pod("permit", "member", seconds_left=40, plugins=("Gang",), message="3 of 4", node="n1"),
        pod("binding", "bound", step="Bind", node="n2", group="default/g"),
    ),
    groups=(
        QueuedGroup(
            namespace="default",
            name="g",
            source="",
            minimum=4,
            members=4,
            placed=3,
            waiting=1,
            gated=0,
            at_permit=3,
            message="",
        ),
    ),
)

TABLE = """\
NAMESPACE   NAME     QUEUE           ATTEMPTS   SINCE   UNTIL               WHY
default     first    active          0          1m6s    #1
default     second   active          2          1m6s    #2                  0/1 nodes are available.
default     late     backoff         1          1m6s    in 1.4s or sooner   no room
default     giant    unschedulable   3          1m6s    event, or in 4m12s  Fit
team        held     gated           0          1m6s    event               SchedulingGates: waiting for scheduling gates: [a]
default     member   permit                     1m6s    in 40s              Gang: 3 of 4
default     bound    binding                    1m6s    Bind                node n2

NAMESPACE   GROUP   MINIMUM   MEMBERS   PLACED   WAITING   GATED   AT PERMIT   WHY
default     g       4         4         3        1         0       3"""  # noqa: E501 - as printed


def test_the_tables_of_pods_and_groups() -> None:
    printed = [" ".join(line.split()) for line in lines(ANSWER, wide=False)]
    assert printed == [" ".join(line.split()) for line in TABLE.splitlines()]


def test_the_wide_table_adds_priority_scheduler_node_group_and_events() -> None:
    found = narrowed(ANSWER, "team")
    assert [" ".join(line.split()) for line in lines(found, wide=True)] == [
        "NAMESPACE NAME QUEUE ATTEMPTS SINCE UNTIL WHY PRIORITY SCHEDULER NODE GROUP WOKEN BY",
        "team held gated 0 1m6s event SchedulingGates: waiting for scheduling gates: [a] 0 "
        "default-scheduler <none> <none> SchedulingGates: PodUpdatePodSchedulingGatesEliminated",
    ]


EMPTY = msgspec.structs.replace(
    ANSWER,
    pods=(),
    groups=(),
    sizes=QueueSizes(
        active=0, in_flight=0, backoff=0, unschedulable=0, gated=0, permit=0, binding=0
    ),
)


@pytest.mark.parametrize(
    ("found", "namespace", "told"),
    [
        pytest.param(ANSWER, "", [], id="nothing is left out"),
        pytest.param(EMPTY, "", ["no pods wait"], id="nothing waits"),
        pytest.param(
            narrowed(ANSWER, "other"), "other", ["no pods wait in other namespace"], id="elsewhere"
        ),
        pytest.param(
            msgspec.structs.replace(ANSWER, scheduling=False),
            "",
            ["this scheduler waits for the lease: it does not schedule"],
            id="a replica that waits for the lease",
        ),
        pytest.param(
            msgspec.structs.replace(ANSWER, pods=ANSWER.pods[:1]),
            "",
            [
                "1 of 2 active pods are listed; --limit lists more",
                "0 of 1 backoff pods are listed; --limit lists more",
                "0 of 1 unschedulable pods are listed; --limit lists more",
                "0 of 1 gated pods are listed; --limit lists more",
                "0 of 1 permit pods are listed; --limit lists more",
                "0 of 1 binding pods are listed; --limit lists more",
            ],
            id="pods beyond the limit",
        ),
    ],
)
def test_remarks_say_what_the_tables_leave_out(found, namespace, told) -> None:
    assert list(remarks(found, namespace)) == told


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0.0s"),
        (0.04, "0.0s"),
        (9.96, "10.0s"),
        (59.4, "59s"),
        (59.6, "1m"),
        (252, "4m12s"),
        (11_100, "3h5m"),
        (7200, "2h"),
        (187_200, "2d4h"),
    ],
)
def test_durations_have_two_units_at_most(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_an_answer_survives_the_wire() -> None:
    assert read_answer(msgspec.json.encode(ANSWER)) == ANSWER


def test_an_answer_of_another_version_is_told() -> None:
    with pytest.raises(MoorageError, match="has it another version"):
        read_answer(b'{"kind": "SchedulingQueue"}')
