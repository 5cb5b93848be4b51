"""The source of the page's answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import msgspec


class Answered(msgspec.Struct, frozen=True):
    """The reply to a question.

    Parameters
    ----------
    body
        The answer, or a Status that says why there is none; JSON.
    status
        The HTTP status.
    """

    body: bytes
    status: int = 200

    @property
    def message(self) -> str:
        """Reason why there is no answer, as the Status says it."""
        try:
            return str(msgspec.json.decode(self.body, type=_Status).message)
        except msgspec.MsgspecError:
            return f"HTTP status {self.status}"


class _Status(msgspec.Struct):
    message: str = ""


class Source(Protocol):
    """Answers the questions of ``/moorage/v1``."""

    async def ask(self, path: str, query: Mapping[str, str], body: bytes = b"") -> Answered:
        """Ask a question.

        Parameters
        ----------
        path
            The path below ``/moorage/v1``, with a slash.
        query
            The parameters.
        body
            What a query cannot hold, JSON; for questions that try changes, which write nothing.

        Raises
        ------
        MoorageError
            Nobody answers.
        """
        ...
