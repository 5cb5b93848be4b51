"""The question about one pod, as the running scheduler answers it over HTTP."""

from __future__ import annotations

from typing import Final, Protocol

import msgspec

from moorage.api.pod import Pod
from moorage.base.clock import Clock, rfc3339_micro
from moorage.base.errors import NotFoundError, UsageError
from moorage.estimates.answer import StartEstimate
from moorage.explain.answer import Explanation, Where
from moorage.service.questions.question import Answer, Parameter, Question, QuestionParameters
from moorage.service.scheduler import Scheduler

LIVE: Final = "From the scheduler's own state, at this moment."
_YES: Final = "true"
WITH_ESTIMATE: Final = frozenset({Where.REJECTED, Where.FITS, Where.EXTENDERS, Where.NOMINATED})
"""Where a pod waits for room or for its turn, so that an estimate says something."""


class ExplanationAnswer(Answer, frozen=True, kw_only=True, rename="camel"):
    """The place of a pod, the reasons why no node takes it, and single changes that would help.

    Parameters
    ----------
    explanation
        The answer about the pod.
    """

    kind: str = "Explanation"
    explanation: Explanation


class Estimator(Protocol):
    """Estimates when a waiting pod starts."""

    async def estimate(self, pod: Pod) -> StartEstimate:
        """Return the estimate about a pod."""
        ...


def explain_question(
    scheduler: Scheduler, clock: Clock, estimator: Estimator | None = None
) -> Question:
    """Return the question about one pod; it takes bounded time and changes no decision.

    Parameters
    ----------
    scheduler, clock
        The running scheduler, and the time.
    estimator
        Estimates when the pod starts; None where the configuration asks for no estimates.
    """

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
        explanation = explain(core, pod, effort_of(node=node, every=every, thorough=False))
        if estimator is not None and explanation.where in WITH_ESTIMATE:
            start = await estimator.estimate(pod)
            explanation = msgspec.structs.replace(explanation, start=start)
        return ExplanationAnswer(
            time=rfc3339_micro(clock.now_ns()),
            scheduling=scheduler.schedules,
            explanation=msgspec.structs.replace(explanation, source=LIVE),
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
