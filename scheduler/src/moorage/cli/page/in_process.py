"""The scheduler of this process as the source of a page's answers."""

from __future__ import annotations

from collections.abc import Mapping

from moorage.dashboard.source import Answered
from moorage.service.process.health import BodyPage, QueryPage
from moorage.service.questions.pages import refused
from moorage.service.questions.question import PREFIX


class InProcess:
    """Asks the scheduler of this process, without HTTP.

    Parameters
    ----------
    pages
        The answers by path, as its secure port serves them.
    bodies
        The answers to questions with a body, by path.
    """

    def __init__(self, pages: Mapping[str, QueryPage], bodies: Mapping[str, BodyPage]) -> None:
        self._pages = pages
        self._bodies = bodies

    async def ask(self, path: str, query: Mapping[str, str], body: bytes = b"") -> Answered:
        """Ask a question; an unknown one is answered by a Status."""
        page, tried = self._pages.get(f"{PREFIX}{path}"), self._bodies.get(f"{PREFIX}{path}")
        if body and tried is not None:
            answered = await tried(body)
        elif page is not None:
            answered = await page(query)
        else:
            answered = refused(404, "NotFound", f"{PREFIX}{path}: there is no such question")
        return Answered(answered.body, answered.status)
