"""The question about one pod, as the running scheduler answers it over HTTP."""

from __future__ import annotations

from typing import Final

import msgspec

from moorage.base.clock import Clock, rfc3339_micro
from moorage.base.errors import NotFoundError, UsageError
from moorage.explain.answer import Explanation
from moorage.service.questions.question import Answer, Parameter, Question, QuestionParameters
from moorage.service.scheduler import Scheduler

LIVE: Final = "From the scheduler's own state, at this moment."
_YES: Final = "true"


class ExplanationAnswer(Answer, frozen=True, kw_only=True, rename="camel"):
    """The place of a pod, the reasons why no node takes it, and single changes that would help.

    Parameters
    ----------
    explanation
        The answer about the pod.
    """

    kind: str = "Explanation"
    explanation: Explanation


def explain_question(scheduler: Scheduler, clock: Clock) -> Question:
    """Return the question about one pod; it takes bounded time and changes no decision."""

    async def ask(parameters: QuestionParameters) -> ExplanationAnswer:
        # Imported with the first question: a scheduler starts sooner without.
        from moorage.explain.explaining import effort_of, explain

        namespace, _, name = parameters["pod"].partition("/")
        if not namespace or not name:
            raise UsageError(f"pod: {parameters['pod']!r}: write NAMESPACE/NAME")
        core, node = scheduler.core, parameters.get("node", "")
        pod = core.store.get(namespace, name)
        if pod is None:
            raise NotFoundError(404, "NotFound", f'pods "{name}" not found in {namespace}')
        if node and core.snapshot.row_of(node) is None:
            raise UsageError(f'node "{node}" not found')
        every = parameters.get("all", "") == _YES
        found = explain(core, pod, effort_of(node=node, every=every, thorough=False))
        return ExplanationAnswer(
            time=rfc3339_micro(clock.now_ns()),
            scheduling=scheduler.schedules,
            explanation=msgspec.structs.replace(found, source=LIVE),
        )

    return Question(
        path="/explain",
        summary="Where a pod is on its way, why no node takes it, and which single changes would "
        "help; each was tried",
        answer=ExplanationAnswer,
        ask=ask,
        parameters=(
            Parameter(
                name="pod",
                description="The pod, as NAMESPACE/NAME.",
                required=True,
                names="pod",
            ),
            Parameter(
                name="node",
                description="A node that is listed in addition to the best ones.",
                names="node",
            ),
            Parameter(
                name="all",
                description="Whether every node is listed, instead of the ten best.",
                schema={"type": "string", "enum": ["true", "false"], "default": "false"},
            ),
        ),
    )
