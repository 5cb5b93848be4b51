"""Has the objects of a watch stream converted by a webhook before they are rendered.

Place in the flow: `moorage_sandbox.apiserver.verbs.watching` calls this for each part of a stream.
A call without a stream is answered once more instead (`gathering`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from moorage.kinds.status import StatusError
from moorage_sandbox.apiserver.catalog import Served
from moorage_sandbox.apiserver.webhooks.answers import (
    AnswersNeeded,
    answering_with,
    current_answers,
)
from moorage_sandbox.storage.record import Record

T = TypeVar("T")


class Conversions:
    """The conversions for one watch stream, of the part that is sent next.

    Parameters
    ----------
    served
        The watched resource.
    """

    def __init__(self, served: Served) -> None:
        self._served = served
        self._answers = current_answers() if served.converter is not None else None

    async def prepare(self, records: Iterable[Record]) -> StatusError | None:
        """Have records converted; return why they cannot be converted."""
        if self._answers is None:
            return None
        answers = self._answers = self._answers.successor()
        wanted = list(records)
        while True:
            try:
                with answering_with(answers):
                    self._served.prepare_reads(wanted)
            except AnswersNeeded as needed:
                seconds = max(each.timeout_seconds for each in needed.questions)
                answers.add_answers(await answers.ask(needed.questions, seconds))
            except StatusError as error:
                return error
            else:
                return None

    def known_to(self, work: Callable[[], T]) -> Callable[[], T]:
        """Return work that reads converted records."""
        answers = self._answers
        if answers is None:
            return work

        def reading() -> T:
            with answering_with(answers):
                return work()

        return reading
