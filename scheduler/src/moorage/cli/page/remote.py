"""A scheduler elsewhere as the source of a page's answers: its questions, asked over HTTP."""

from __future__ import annotations

from collections.abc import Mapping

from moorage.cli.ask import question_call
from moorage.client.transport import Answer, Transport
from moorage.dashboard.source import Answered
from moorage.service.questions.question import PREFIX


class Remote:
    """Asks a scheduler over HTTP.

    Parameters
    ----------
    transport
        Carries the calls.
    path
        What stands before the path of a question: the path of a proxy, or nothing.
    """

    def __init__(self, transport: Transport, path: str) -> None:
        self._transport = transport
        self._path = path

    async def ask(self, path: str, query: Mapping[str, str], body: bytes = b"") -> Answered:
        """Ask a question.

        Raises
        ------
        TransportError
            The scheduler cannot be reached.
        """
        call = question_call(f"{self._path}{PREFIX}{path}", query, body=body)
        answer: Answer = await self._transport.request(call)
        return Answered(answer.body, answer.status)
