"""The scheduler of this process as the source of a page's answers."""

from __future__ import annotations

from collections.abc import Mapping

from moorage.dashboard.source import Answered
from moorage.service.health import QueryPage
from moorage.service.questions.pages import refused
from moorage.service.questions.question import PREFIX


class InProcess:
    """Asks the scheduler of this process, without HTTP.

    Parameters
    ----------
    pages
        The answers by path, as its secure port serves them.
    """

    def __init__(self, pages: Mapping[str, QueryPage]) -> None:
        self._pages = pages

    async def ask(self, path: str, query: Mapping[str, str]) -> Answered:
        """Ask a question; an unknown one is answered by a Status."""
        page = self._pages.get(f"{PREFIX}{path}")
        if page is None:
            made = refused(404, "NotFound", f"{PREFIX}{path}: there is no such question")
        else:
            made = await page(query)
        return Answered(made.body, made.status)
