"""Serves questions: reads the parameters, encodes the answer, turns errors into Statuses."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Final, TypeVar

import msgspec

from moorage.api.mentions import Prose
from moorage.base.errors import ApiError, UsageError
from moorage.service.attempts.failure_status import failure_status
from moorage.service.core import Core
from moorage.service.process.health import BodyPage, Page, QueryPage
from moorage.service.questions.openapi import openapi
from moorage.service.questions.question import PREFIX, BodyQuestion, Question, Readable
from moorage.service.questions.redaction import Redaction
from moorage.service.questions.written_names import PODS, WrittenNames
from moorage.service.serving.rights import Rights

T = TypeVar("T")
_JSON: Final = "application/json"
# An answer of so many bytes is filtered in 5 ms (2-core machine, 2026-11-28).
_BYTES_FILTERED_HERE: Final = 128 * 1024
OPENAPI_PATH: Final = f"{PREFIX}/openapi.json"


def question_pages(
    questions: Sequence[Question],
    with_body: Sequence[BodyQuestion] = (),
    *,
    core: Core | None = None,
) -> dict[str, QueryPage]:
    """Return the pages of questions by path, with the OpenAPI document of these and others.

    Parameters
    ----------
    with_body
        Questions that the document describes besides; `body_pages` has their pages.
    core
        The state with the names that answers may have; None where every caller reads everything.
    """
    document = b""

    async def described(query: Mapping[str, str], rights: Rights | None = None) -> Page:
        nonlocal document
        del query, rights
        document = document or msgspec.json.encode(openapi(questions, with_body))
        return Page(document, _JSON)

    pages = {f"{PREFIX}{each.path}": _page(each, core) for each in questions}
    return {**pages, OPENAPI_PATH: described}


def _page(question: Question, core: Core | None) -> QueryPage:
    async def page(query: Mapping[str, str], rights: Rights | None = None) -> Page:
        try:
            _check(question, query)
            if rights is None or await rights.read_everything():
                answer = await question.ask(query)
            else:
                answer = await _redacted(
                    lambda: question.ask(query), _objects_of(question, query), rights, core
                )
        except UsageError as error:
            return refused(400, "BadRequest", str(error))
        except ApiError as error:
            return refused(error.code, error.reason, error.message)
        return Page(msgspec.json.encode(answer), _JSON)

    return page


def _objects_of(question: Question, query: Mapping[str, str]) -> list[Readable]:
    """Return the objects that the parameters name."""
    objects = []
    for each in question.parameters:
        value = query.get(each.name, "")
        namespace, slash, name = value.partition("/")
        if each.names == "pod" and slash:
            objects.append(Readable("pods", namespace=namespace, name=name))
        elif each.names == "node" and value:
            objects.append(Readable("nodes", name=value))
    return objects


def body_pages(
    questions: Sequence[BodyQuestion], *, core: Core | None = None
) -> dict[str, BodyPage]:
    """Return the pages of questions that come as a body, by path; `core` as in `question_pages`."""
    return {f"{PREFIX}{each.path}": _body_page(each, core) for each in questions}


def _body_page(question: BodyQuestion, core: Core | None) -> BodyPage:
    async def page(body: bytes, rights: Rights | None = None) -> Page:
        try:
            if rights is None or await rights.read_everything():
                answer = await question.ask(body)
            else:
                answer = msgspec.json.encode(
                    await _redacted(
                        lambda: _decoded(question, body), await question.names(body), rights, core
                    )
                )
        except UsageError as error:
            return refused(400, "BadRequest", str(error))
        except ApiError as error:
            made = refused(error.code, error.reason, error.message)
            after = error.retry_after_seconds
            if after is None:
                return made
            return msgspec.structs.replace(made, headers={"Retry-After": f"{math.ceil(after)}"})
        return Page(answer, _JSON)

    return page


async def _decoded(question: BodyQuestion, body: bytes) -> msgspec.Struct:
    return msgspec.json.decode(await question.ask(body), type=question.answer)


class _Problem(msgspec.Struct, frozen=True):
    """The words of an error."""

    message: Prose


async def _redacted(
    ask: Callable[[], Awaitable[msgspec.Struct]],
    objects: Sequence[Readable],
    rights: Rights,
    core: Core | None,
) -> msgspec.Struct:
    """Return an answer without what its caller may not read.

    Parameters
    ----------
    objects
        What the question names; if the caller may not read that, nothing is answered.

    Raises
    ------
    ApiError, UsageError
        As `ask` does, without such names; 403.
    """
    assert core is not None, "questions about a cluster, and none other, ask for rights"
    for each in objects:
        await rights.require_read(each)
    pods = [(each.namespace, each.name) for each in objects if each.resource == PODS]
    error: ApiError | UsageError | None = None
    try:
        answer = await ask()
    except (ApiError, UsageError) as problem:
        error, answer = problem, _Problem(str(problem))
    # No await since the answer: its names are those of this moment, or, where it is filtered in a
    # thread, of the tenths of a second from then on.
    names, long = WrittenNames(core), len(msgspec.json.encode(answer)) > _BYTES_FILTERED_HERE
    redaction = await _done(partial(Redaction, answer, names), long=long)
    sight = await rights.sight(redaction.doubts, pods)
    answer = await _done(partial(redaction.apply, sight), long=long)
    if error is None:
        return answer
    assert isinstance(answer, _Problem), "as it was given"
    if isinstance(error, UsageError):
        raise UsageError(answer.message) from error
    raise ApiError(
        error.code,
        error.reason,
        answer.message,
        retry_after_seconds=error.retry_after_seconds,
    ) from error


async def _done(work: Callable[[], T], *, long: bool) -> T:
    """Do work here, or in a thread where it would hold the loop; it looks names up, no more."""
    return await asyncio.to_thread(work) if long else work()


def _check(question: Question, query: Mapping[str, str]) -> None:
    """Refuse unknown parameters, and the lack of required parameters.

    Raises
    ------
    UsageError
        The query cannot be answered.
    """
    names = sorted(each.name for each in question.parameters)
    for name in query:
        if name not in names:
            known = ", ".join(names) or "none"
            raise UsageError(f"{name}: there is no such parameter; there are: {known}")
    for each in question.parameters:
        if each.required and not query.get(each.name):
            raise UsageError(f"{each.name}: the parameter is required")


def refused(code: int, reason: str, message: str) -> Page:
    """Return a Status that says why a question is not answered."""
    return Page(failure_status(code, reason, message, details={}), _JSON, code)
