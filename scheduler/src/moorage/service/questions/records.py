"""The findings of attempts: the answer of ``/moorage/v1/records``, from the recorder."""

from __future__ import annotations

from typing import Final

import msgspec

from moorage.base.clock import Clock, rfc3339_micro
from moorage.base.errors import NotFoundError, UsageError
from moorage.observe.records.record import AttemptRecord
from moorage.observe.records.recorder import Recorder
from moorage.observe.records.shown_attempt import ShownAttempt, shown_attempt
from moorage.service.questions.question import (
    Answer,
    Parameter,
    Question,
    QuestionParameters,
    whole_number,
)
from moorage.service.scheduler import Scheduler

_ATTEMPTS_MAX: Final = 1_000_000_000


class RecordsInMemory(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The number of records that the scheduler holds.

    Parameters
    ----------
    records
        Their number.
    dropped
        How many were dropped to stay within the bound.
    used_bytes
        Their memory, bytes; a little more than it takes.
    bytes_max
        The bound, as ``--records-bytes`` sets it.
    """

    records: int
    dropped: int
    used_bytes: int
    bytes_max: int


class RecordsAnswer(Answer, frozen=True, kw_only=True, rename="camel"):
    """The records of a pod's attempts.

    Parameters
    ----------
    in_memory
        What the scheduler holds altogether.
    attempts
        The pod's attempts, oldest first; only the one that was asked for, if one was. Without a
        pod: none.
    """

    kind: str = "AttemptRecords"
    in_memory: RecordsInMemory = msgspec.field(name="held")
    attempts: tuple[ShownAttempt, ...]


def records_question(scheduler: Scheduler, clock: Clock) -> Question:
    """Return the question what the attempts of a pod found."""

    async def ask(parameters: QuestionParameters) -> RecordsAnswer:
        return records_answer(
            recorder_of(scheduler),
            parameters,
            now_ns=clock.now_ns(),
            scheduling=scheduler.schedules,
        )

    return Question(
        path="/records",
        summary="What the attempts of a pod found, and what came of them",
        answer=RecordsAnswer,
        ask=ask,
        parameters=(
            Parameter(name="pod", description="The pod, as NAMESPACE/NAME.", names="pod"),
            Parameter(
                name="attempt",
                description="Only this attempt of the pod, counted from 1, with the nodes that "
                "Filter rejected.",
                schema={"type": "integer", "minimum": 1},
            ),
        ),
    )


def recorder_of(scheduler: Scheduler) -> Recorder:
    """Return what keeps the records of a scheduler.

    Raises
    ------
    NotFoundError
        The scheduler keeps no records.
    """
    recorder = scheduler.core.recorder
    if recorder is None:
        text = "this scheduler keeps no records: it runs with --records-bytes=0"
        if scheduler.only_watches:
            text = "attempts are not known: another scheduler decides, and this one only watches"
        raise NotFoundError(404, "NotFound", text)
    return recorder


def records_answer(
    recorder: Recorder, parameters: QuestionParameters, *, now_ns: int, scheduling: bool
) -> RecordsAnswer:
    """Return the records that are asked for.

    Raises
    ------
    UsageError
        A parameter cannot be used.
    NotFoundError
        No record of the pod, or of the attempt, is held.
    """
    ring = recorder.ring
    return RecordsAnswer(
        time=rfc3339_micro(now_ns),
        scheduling=scheduling,
        in_memory=RecordsInMemory(
            records=len(ring),
            dropped=ring.dropped,
            used_bytes=ring.nbytes,
            bytes_max=ring.bytes_max,
        ),
        attempts=_attempts(recorder, parameters),
    )


def _attempts(recorder: Recorder, parameters: QuestionParameters) -> tuple[ShownAttempt, ...]:
    name = parameters.get("pod", "")
    number = whole_number(parameters, "attempt", default=0, least=1, most=_ATTEMPTS_MAX)
    if not name:
        if number:
            raise UsageError("attempt: name the pod as well, as pod=NAMESPACE/NAME")
        return ()
    namespace, slash, pod = name.partition("/")
    if not (namespace and slash and pod) or "/" in pod:
        raise UsageError(f"pod: {name!r}: write NAMESPACE/NAME")
    records = recorder.ring.of_pod((namespace, pod))
    if not records:
        raise NotFoundError(404, "NotFound", f'no attempt of pod "{name}" is on record')
    if number:
        records = [each for each in records if each.attempt == number]
        if not records:
            raise NotFoundError(404, "NotFound", _missing(recorder, (namespace, pod), number))
    return tuple(shown_attempt(each, rejections=bool(number)) for each in records)


def _missing(recorder: Recorder, key: tuple[str, str], number: int) -> str:
    held: list[AttemptRecord] = recorder.ring.of_pod(key)
    numbers = ", ".join(str(each.attempt) for each in held)
    return f'attempt {number} of pod "{"/".join(key)}" is not on record; on record: {numbers}'
