"""The tables of ``moorage queue``, whole; the scheduler's answers are written by hand."""

from __future__ import annotations

import msgspec
import pytest

from moorage.base.errors import MoorageError
from moorage.cli.ask import read_answer
from moorage.cli.queue.text import (
    folded_lines,
    folded_remarks,
    narrowed,
    remarks,
    wide_lines,
)
from moorage.cli.rows.durations import duration
from moorage.cli.rows.text import fold_lines
from moorage.service.questions.answers import (
    QueueAnswer,
    QueuedGroup,
    QueuedPod,
    QueueSizes,
    WakingEvents,
)
from moorage.service.questions.folding.folded_queue import rows_of
from moorage.service.questions.folding.folds import first_folds, fold

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
NO_CPU = "0/1 nodes are available: 1 Insufficient cpu."
DATABASE = {
    "owner": "deployment/db",
    "reason": "UntoleratedTaint",
    "message": "0/1 nodes are available: 1 node(s) had untolerated taint(s).",
}
ANSWER = QueueAnswer(
    time="2026-01-01T00:01:05.500000Z",
    scheduling=True,
    sizes=SIZES,
    pods=(
        pod("active", "first", attempts=0, position=1, priority=7, reason="NotTriedYet"),
        pod("active", "second", attempts=2, position=2, message=NO_CPU, reason="InsufficientCPU"),
        pod("backoff", "db-1", attempts=1, seconds_left=1.4, may_be_early=True, **DATABASE),
        pod("unschedulable", "db-2", attempts=3, seconds_left=252, **DATABASE),
        pod(
            "gated",
            "held",
            attempts=0,
            plugins=("SchedulingGates",),
            message="waiting for scheduling gates: [a]",
            reason="SchedulingGated",
            woken_by=(GATE,),
        ),
        pod(
            "permit",
            "member",
            seconds_left=40,
            plugins=("Gang",),
            message="3 of 4",
            reason="WaitingForGroup",
            node="n1",
            group="default/g",
        ),
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
            message="needs a node with 4 free cpu",
        ),
    ),
)

TABLE = """\
PODS  OWNER                  QUEUE     OLDEST  REASON
   1  default/pod/first      active    1m6s    NotTriedYet
   1  default/pod/second     active    1m6s    InsufficientCPU
      0/1 nodes are available: 1 Insufficient cpu.
   2  default/deployment/db  backoff…  1m6s    UntoleratedTaint
      0/1 nodes are available: 1 node(s) had untolerated taint(s).
   1  team/pod/held          gated     1m6s    SchedulingGated
      waiting for scheduling gates: [a]
   1  default/pod/member     permit    1m6s    WaitingForGroup
      group default/g: 3 of 4
   1  default/pod/bound      binding   1m6s
      group default/g

PLACED  GROUP      MINIMUM  WAITING  GATED  AT PERMIT
     3  default/g  4        1        0      3
        needs a node with 4 free cpu"""


def folded(answer: QueueAnswer) -> list[str]:
    return folded_lines(answer, fold(rows_of(answer.pods), sort="age"), width=80)


def test_pods_that_wait_alike_are_one_row() -> None:
    assert folded(ANSWER) == TABLE.splitlines()


def test_the_wide_table_has_every_pod_with_all_columns() -> None:
    found = narrowed(ANSWER, "team")
    assert [" ".join(line.split()) for line in wide_lines(found)] == [
        "NAMESPACE NAME QUEUE ATTEMPTS SINCE UNTIL WHY REASON OWNER PRIORITY SCHEDULER NODE GROUP "
        "WOKEN BY",
        "team held gated 0 1m6s event SchedulingGates: waiting for scheduling gates: [a] "
        "SchedulingGated <none> 0 default-scheduler <none> <none> "
        "SchedulingGates: PodUpdatePodSchedulingGatesEliminated",
    ]


def test_rows_and_pods_that_are_not_shown_are_counted() -> None:
    shown = first_folds(fold(rows_of(ANSWER.pods)), 2)
    assert list(folded_remarks(ANSWER, shown, "")) == [
        "4 more rows with 4 pods are not shown; --limit shows more",
        "`moorage explain podgroup/g -n default` says what would help the group",
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
    assert read_answer(msgspec.json.encode(ANSWER), QueueAnswer) == ANSWER


def test_an_answer_of_another_version_is_told() -> None:
    with pytest.raises(MoorageError, match="has it another version"):
        read_answer(b'{"kind": "SchedulingQueue"}', QueueAnswer)


def test_no_rows_are_no_lines() -> None:
    assert fold_lines([], now_ns=0, width=80) == []
