"""The last hour of the scheduler: the answer of ``/moorage/v1/history``."""

from __future__ import annotations

from moorage.base.clock import Clock, rfc3339_micro
from moorage.service.history.moments import EVERY_SECONDS, Moment
from moorage.service.questions.question import Answer, Question, QuestionParameters
from moorage.service.scheduler import Scheduler


class HistoryAnswer(Answer, frozen=True, kw_only=True, rename="camel"):
    """The last hour of the scheduler.

    Parameters
    ----------
    every_seconds
        The time between two moments.
    moments
        The oldest first; the last one is the present. Empty for a replica that does not schedule.
    """

    kind: str = "History"
    every_seconds: float
    moments: tuple[Moment, ...]


def history_question(scheduler: Scheduler, clock: Clock) -> Question:
    """Return the question about the last hour."""

    async def ask(parameters: QuestionParameters) -> HistoryAnswer:
        del parameters
        schedules = scheduler.schedules
        return HistoryAnswer(
            time=rfc3339_micro(clock.now_ns()),
            scheduling=schedules,
            every_seconds=EVERY_SECONDS,
            moments=tuple(scheduler.history.moments()) if schedules else (),
        )

    return Question(
        path="/history",
        summary="The last hour of this scheduler, every ten seconds: what waited, what was "
        "decided, how full the nodes were",
        answer=HistoryAnswer,
        ask=ask,
    )
