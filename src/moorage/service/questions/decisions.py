"""The last decisions, one line each: the answer of ``/moorage/v1/decisions``, from the records."""

from __future__ import annotations

from itertools import islice, takewhile
from typing import Final

import msgspec

from moorage.base.clock import NS_PER_SECOND, Clock, rfc3339_micro
from moorage.base.errors import NotFoundError
from moorage.observe.records.record import AttemptRecord
from moorage.observe.records.recorder import Recorder
from moorage.service.questions.question import Answer, Given, Parameter, Question, whole_number
from moorage.service.scheduler import Scheduler

LIMIT: Final = 200
LIMIT_MAX: Final = 2000
_NUMBERS_MAX: Final = 10**15


class DecisionStep(msgspec.Struct, frozen=True, rename="camel"):
    """A step after a decision.

    Parameters
    ----------
    name
        Reserve, Permit, WaitOnPermit, PreBind or Bind.
    seconds
        How long it took, seconds.
    """

    name: str
    seconds: float


class DecisionLine(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """A decision in short; ``/records`` tells the whole.

    Parameters
    ----------
    number
        Numbers the attempts of a scheduler in the order of their decisions, from 1.
    namespace, name, uid
        The pod.
    scheduler_name
        The profile that decided.
    attempt
        The pod's own attempts, this one included.
    time
        When the decision was made, RFC 3339 with microseconds.
    seconds
        How long the decision took, seconds; 0 for members of groups, which are decided together.
    outcome
        bind, reject or error.
    node
        The chosen node; absent for none.
    feasible, evaluated
        The nodes that passed Filter, and all nodes that were filtered.
    message
        Why there is no node, or why the binding failed.
    victims
        How many pods are evicted for it.
    steps
        The steps after the decision.
    end
        bound, requeued, or gone; absent while the binding is under way.
    """

    number: int
    namespace: str
    name: str
    uid: str
    scheduler_name: str
    attempt: int
    time: str
    seconds: float
    outcome: str
    node: str = ""
    feasible: int = 0
    evaluated: int = 0
    message: str = ""
    victims: int = 0
    steps: tuple[DecisionStep, ...] = ()
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

    async def ask(given: Given) -> DecisionsAnswer:
        recorder = scheduler.core.recorder
        if recorder is None:
            raise NotFoundError(
                404, "NotFound", "this scheduler keeps no records: it runs with --records-bytes=0"
            )
        limit = whole_number(given, "limit", default=LIMIT, least=1, most=LIMIT_MAX)
        since = whole_number(given, "since", default=0, least=0, most=_NUMBERS_MAX)
        lines = tuple(_newest(recorder, since=since, limit=limit))
        return DecisionsAnswer(
            time=rfc3339_micro(clock.now_ns()),
            scheduling=scheduler.elector is None or scheduler.elector.leading,
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


def _newest(recorder: Recorder, *, since: int, limit: int) -> list[DecisionLine]:
    """Return the newest decisions after a number, newest first."""
    newer = takewhile(lambda each: each.number > since, recorder.ring.newest_first())
    return [_line(each) for each in islice(newer, limit)]


def _line(record: AttemptRecord) -> DecisionLine:
    namespace, name = record.key
    return DecisionLine(
        number=record.number,
        namespace=namespace,
        name=name,
        uid=record.uid,
        scheduler_name=record.profile,
        attempt=record.attempt,
        time=rfc3339_micro(record.at_ns),
        seconds=record.took_ns / NS_PER_SECOND,
        outcome=record.outcome,
        node=record.node,
        feasible=record.feasible,
        evaluated=record.evaluated,
        message=record.message,
        victims=len(record.victims),
        steps=tuple(DecisionStep(each.name, each.took_ns / NS_PER_SECOND) for each in record.steps),
        end=record.end,
    )
