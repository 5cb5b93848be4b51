"""The last decisions, one line each: the answer of ``/moorage/v1/decisions``, from the records."""

from __future__ import annotations

from itertools import islice, takewhile
from typing import Final

from moorage.api.mentions import NodeName, Prose
from moorage.base.clock import Clock, rfc3339_micro
from moorage.observe.records.record import AttemptRecord
from moorage.observe.records.recorder import Recorder
from moorage.observe.records.shown_attempt import (
    AttemptHead,
    ShownStep,
    head_of,
    reason_of,
    steps_of,
)
from moorage.service.core import Core
from moorage.service.questions.question import (
    Answer,
    Parameter,
    Question,
    QuestionParameters,
    whole_number,
)
from moorage.service.questions.records import recorder_of
from moorage.service.scheduler import Scheduler

LIMIT: Final = 200
LIMIT_MAX: Final = 2000
_NUMBERS_MAX: Final = 10**15


class DecisionLine(AttemptHead, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A decision in short; ``/records`` tells the whole.

    Parameters
    ----------
    owner, group
        ``Kind/name`` of the pod's controller, and ``namespace/name`` of its group; absent without
        one, and for a pod that is gone.
    node
        The chosen node; absent for none.
    feasible, evaluated
        The nodes that passed Filter, and all nodes that were filtered.
    message
        Why there is no node, or why the binding failed.
    reason
        The code of that reason.
    victims
        How many pods are evicted for it.
    steps
        The steps after the decision.
    end
        bound, requeued, or gone; absent while the binding is under way.
    """

    owner: str = ""
    group: str = ""
    node: NodeName = ""
    feasible: int = 0
    evaluated: int = 0
    message: Prose = ""
    reason: str = ""
    victims: int = 0
    steps: tuple[ShownStep, ...] = ()
    end: str = ""


class DecisionsAnswer(Answer, frozen=True, kw_only=True, rename="camel"):
    """The last decisions.

    Parameters
    ----------
    last
        The number of the newest decision; 0 before the first.
    decisions
        The newest ones, newest first.
    """

    kind: str = "Decisions"
    last: int
    decisions: tuple[DecisionLine, ...]


def decisions_question(scheduler: Scheduler, clock: Clock) -> Question:
    """Return the question which decisions were made last."""

    async def ask(parameters: QuestionParameters) -> DecisionsAnswer:
        recorder = recorder_of(scheduler)
        limit = whole_number(parameters, "limit", default=LIMIT, least=1, most=LIMIT_MAX)
        since = whole_number(parameters, "since", default=0, least=0, most=_NUMBERS_MAX)
        lines = tuple(_newest(scheduler.core, recorder, since=since, limit=limit))
        return DecisionsAnswer(
            time=rfc3339_micro(clock.now_ns()),
            scheduling=scheduler.schedules,
            last=recorder.ring.added,
            decisions=lines,
        )

    return Question(
        path="/decisions",
        summary="The last decisions, newest first, one line each",
        answer=DecisionsAnswer,
        ask=ask,
        parameters=(
            Parameter(
                name="since",
                description="Only decisions with a greater number.",
                schema={"type": "integer", "minimum": 0, "default": 0},
            ),
            Parameter(
                name="limit",
                description="Most decisions listed.",
                schema={"type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": LIMIT},
            ),
        ),
    )


def _newest(core: Core, recorder: Recorder, *, since: int, limit: int) -> list[DecisionLine]:
    """Return the newest decisions after a number, newest first."""
    newer = takewhile(lambda each: each.number > since, recorder.ring.newest_first())
    return [_line(each, core) for each in islice(newer, limit)]


def _line(record: AttemptRecord, core: Core) -> DecisionLine:
    pod = core.store.get(*record.key)
    if pod is not None and pod.uid != record.uid:
        pod = None  # another pod of that name
    group = None if pod is None else core.snapshot.groups.key_of(pod)
    return DecisionLine(
        **head_of(record),
        owner="" if pod is None else pod.metadata.owner_title,
        group="" if group is None else group.full_name,
        node=record.node,
        feasible=record.feasible,
        evaluated=record.evaluated,
        message=record.failure.message,
        reason=reason_of(record),
        victims=len(record.failure.victims),
        steps=steps_of(record),
        end=record.end,
    )
