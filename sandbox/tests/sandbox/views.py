"""A view that shows nothing, for tests of what is behind it."""

from __future__ import annotations

from moorage_sandbox.sandbox.lines import Started
from moorage_sandbox.sandbox.progress import Change, Progress


class SilentView:
    """Looks away."""

    def started(self, what: Started) -> None:
        return

    def ready(self, seconds: float) -> None:
        return

    def page(self, link: str) -> None:
        pass

    def serving(self, url: str) -> None:
        return

    def change(self, change: Change) -> None:
        return

    def message(self, text: str) -> None:
        return

    def tick(self, progress: Progress) -> None:
        return

    def closed(self) -> bool:
        return False

    def ended(self, progress: Progress, *, settled: bool) -> None:
        return
