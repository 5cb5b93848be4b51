"""The question about an object or a selection of pods, as the running scheduler answers it."""

from __future__ import annotations

from typing import Final

import msgspec

from moorage.api import resources
from moorage.api.resources import by_name
from moorage.base import aio
from moorage.base.clock import Clock, rfc3339_micro
from moorage.base.errors import UsageError
from moorage.explain.question import LIVE
from moorage.explain.workloads.answer import ObjectExplanation, ObjectQuery
from moorage.service.questions.question import Answer, BodyQuestion, Readable
from moorage.service.scheduler import Scheduler

EXPLAIN_OBJECT: Final = "/explain-object"
"""The path of the question."""


class ObjectExplanationAnswer(Answer, frozen=True, kw_only=True, rename="camel"):
    """The pods of an object by stage and cause, and changes that would help.

    Parameters
    ----------
    explanation
        The answer about the object.
    """

    kind: str = "ObjectExplanation"
    explanation: ObjectExplanation


def explain_object_question(scheduler: Scheduler, clock: Clock) -> BodyQuestion:
    """Return the question about an object; the scheduler goes on between its steps."""

    async def ask(body: bytes) -> bytes:
        # Imported with the first question: a scheduler starts sooner without.
        from moorage.explain.workloads.asking import answer_query

        query = _query(body)
        _check_objects(query)
        steps = answer_query(scheduler.core, query)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                explanation: ObjectExplanation = end.value
                break
            await aio.sleep(0)
        answer = ObjectExplanationAnswer(
            time=rfc3339_micro(clock.now_ns()),
            scheduling=scheduler.schedules,
            explanation=msgspec.structs.replace(explanation, source=LIVE),
        )
        return msgspec.json.encode(answer)

    async def names(body: bytes) -> list[Readable]:
        return _readable_objects(_query(body))

    return BodyQuestion(
        path=EXPLAIN_OBJECT,
        summary="How many pods of a workload or a selection are ready, what keeps the rest, and "
        "which changes would help most of them; each was tried, and nothing is written",
        body=ObjectQuery,
        answer=ObjectExplanationAnswer,
        ask=ask,
        names=names,
    )


def _readable_objects(query: ObjectQuery) -> list[Readable]:
    """Return what a caller must be allowed to read to get an answer."""
    if not query.type_:
        return [Readable("pods", namespace="" if query.all_namespaces else query.namespace)]
    resource = by_name(query.type_)
    pods = Readable("pods", namespace=query.namespace)
    if resource == resources.NODES:
        return [Readable("nodes", name=query.name)]
    if resource == resources.NAMESPACES:
        return [Readable("namespaces", name=query.name), Readable("pods", namespace=query.name)]
    if resource is None:
        return [pods]  # the owner is known by its pods alone
    where = query.namespace if resource.namespaced else ""
    return [Readable(resource.plural, resource.group, where, query.name), pods]


def _query(body: bytes) -> ObjectQuery:
    try:
        return msgspec.json.decode(body, type=ObjectQuery)
    except msgspec.MsgspecError as error:
        raise UsageError(f"the question cannot be read: {error}") from error


def _check_objects(query: ObjectQuery) -> None:
    """Refuse manifests whose values have other types than those of their kinds."""
    from moorage.virtual.kinds import checked_manifest, readable

    for each in query.objects:
        obj = readable(each)
        group = obj["apiVersion"].rpartition("/")[0]
        try:
            checked_manifest(group, obj["kind"], msgspec.json.encode(obj))
        except ValueError as problem:
            name = f"{obj['kind']} {obj['metadata']['name']}"
            raise UsageError(f"{name}: {problem}") from problem
