"""The few changes that the page of a sandbox offers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from moorage.dashboard.source import Answered


class Acts(Protocol):
    """Changes a sandbox. No page of another cluster has this."""

    @property
    def names(self) -> Sequence[str]:
        """The acts there are."""
        ...

    async def perform(self, name: str, body: bytes) -> Answered:
        """Do one of them.

        Parameters
        ----------
        name
            Which one.
        body
            What it needs to know, JSON.

        Raises
        ------
        UsageError
            The body says nothing that can be done.
        MoorageError
            The API server does not do it.
        """
        ...
