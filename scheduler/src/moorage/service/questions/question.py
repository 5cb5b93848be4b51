"""The parts of a question: its path, its parameters, and the type of its answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec

from moorage.base.errors import UsageError

PREFIX: Final = "/moorage/v1"
"""Every question is below this path of the scheduler's secure port."""
API_VERSION: Final = "moorage.dev/v1"
"""The ``apiVersion`` of every answer."""
# Characters of a wrong value that a message shows (a guess).
_SHOWN_MAX: Final = 40


class Readable(msgspec.Struct, frozen=True):
    """Objects of the API that a caller may want to read.

    Parameters
    ----------
    resource, group
        The plural of the kind, and its API group.
    namespace, name
        All namespaces, or all names, where empty.
    """

    resource: str
    group: str = ""
    namespace: str = ""
    name: str = ""


QuestionParameters = Mapping[str, str]
"""The parameters of a question as its caller wrote them, without unknown ones."""


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """A parameter in the query of a question.

    Parameters
    ----------
    name
        Its name.
    description
        Its meaning, unit and default, for the OpenAPI document.
    schema
        Its OpenAPI schema.
    required
        Whether the question cannot be answered without it.
    names
        What the parameter names; the caller must be allowed to read that object.
    """

    name: str
    description: str
    schema: Mapping[str, Any] = msgspec.field(default_factory=lambda: {"type": "string"})
    required: bool = False
    names: Literal["", "pod", "node"] = ""


class Question(msgspec.Struct, frozen=True, kw_only=True):
    """A question that a running scheduler answers.

    Parameters
    ----------
    path
        Below `PREFIX`, with a slash.
    summary
        What is asked, for the OpenAPI document.
    answer
        The type of the answer; fields are in camel case on the wire.
    ask
        Answers. Raises `UsageError` for a parameter that cannot be used (400), `ApiError` with its
        code for any other reason not to answer.
    parameters
        All parameters; any other parameter is refused.
    """

    path: str
    summary: str
    answer: type[msgspec.Struct]
    ask: Callable[[QuestionParameters], Awaitable[msgspec.Struct]]
    parameters: tuple[Parameter, ...] = ()


class BodyQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A question that needs more than a query holds: it comes as the JSON body of a POST.

    Parameters
    ----------
    path
        Below `PREFIX`, with a slash.
    summary
        What is asked, for the OpenAPI document. A POST here writes nothing.
    body
        The type of the body; fields are in camel case on the wire, and unknown ones are refused.
    answer
        The type of the answer.
    ask
        Answers, given the body as it was sent, with the JSON of an answer. Raises as
        `Question.ask` does, for a body that cannot be read as well; 429 and 503 with the time
        after which to ask again.
    names
        Returns the objects that a body names, in any order; raises as `ask` does.
    """

    path: str
    summary: str
    body: type[msgspec.Struct]
    answer: type[msgspec.Struct]
    ask: Callable[[bytes], Awaitable[bytes]]
    names: Callable[[bytes], Awaitable[Sequence[Readable]]]


class Answer(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The fields that every answer has.

    Parameters
    ----------
    api_version
        The version of the answer's fields.
    kind
        The kind of answer.
    time
        When the scheduler answered, RFC 3339 with microseconds.
    scheduling
        Whether this scheduler schedules; false for a replica that waits for the lease.
    hidden
        What the answer does not show because the caller may not read it, such as "3 pods of other
        namespaces"; absent where nothing is hidden.
    """

    api_version: str = API_VERSION
    kind: str
    time: str
    scheduling: bool
    hidden: tuple[str, ...] | msgspec.UnsetType = msgspec.UNSET


def whole_number(
    parameters: QuestionParameters, name: str, *, default: int, least: int, most: int
) -> int:
    """Return a parameter as a whole number within bounds.

    Raises
    ------
    UsageError
        It is no number, or out of bounds.
    """
    text = parameters.get(name, "")
    if not text:
        return default
    # Python refuses to read very long numbers.
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    if not (is_number and least <= int(text) <= most):
        raise UsageError(
            f"{name}: {text[:_SHOWN_MAX]!r}: write a whole number from {least} to {most}"
        )
    return int(text)
