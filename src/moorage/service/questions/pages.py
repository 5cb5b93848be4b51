"""Serves questions: reads the parameters, encodes the answer, turns errors into Statuses."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from moorage.base.errors import ApiError, UsageError
from moorage.service.failure_status import failure_status
from moorage.service.health import BodyPage, Page, QueryPage
from moorage.service.questions.openapi import openapi
from moorage.service.questions.question import PREFIX, BodyQuestion, Question

_JSON: Final = "application/json"
OPENAPI_PATH: Final = f"{PREFIX}/openapi.json"


def question_pages(
    questions: Sequence[Question], with_body: Sequence[BodyQuestion] = ()
) -> dict[str, QueryPage]:
    """Return the pages of questions by path, with the OpenAPI document of these and others.

    Parameters
    ----------
    with_body
        Questions that the document describes besides; `body_pages` has their pages.
    """
    document = b""

    async def described(query: Mapping[str, str]) -> Page:
        nonlocal document
        del query
        document = document or msgspec.json.encode(openapi(questions, with_body))
        return Page(document, _JSON)

    pages = {f"{PREFIX}{each.path}": _page(each) for each in questions}
    return {**pages, OPENAPI_PATH: described}


def _page(question: Question) -> QueryPage:
    async def page(query: Mapping[str, str]) -> Page:
        try:
            _check(question, query)
            answer = await question.ask(query)
        except UsageError as error:
            return refused(400, "BadRequest", str(error))
        except ApiError as error:
            return refused(error.code, error.reason, error.message)
        return Page(msgspec.json.encode(answer), _JSON)

    return page


def body_pages(questions: Sequence[BodyQuestion]) -> dict[str, BodyPage]:
    """Return the pages of questions that come as a body, by path."""
    return {f"{PREFIX}{each.path}": _body_page(each) for each in questions}


def _body_page(question: BodyQuestion) -> BodyPage:
    async def page(body: bytes) -> Page:
        try:
            answer = await question.ask(body)
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
