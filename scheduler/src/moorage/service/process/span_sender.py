"""Sends spans from a thread of its own, so that no collector delays the scheduler.

`queue_spans` never waits: where the bounded queue is full, spans are dropped and counted.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from moorage.observe.traces.span import Span

SPANS_MAX: Final = 16_384
"""Spans that wait at once, about 10 MB. A guess: some seconds of a busy scheduler."""
_BATCH: Final = 512  # as OpenTelemetry's own batch processors
_WAIT_SECONDS: Final = 1.0
_CLOSE_SECONDS: Final = 1.0


class SpanSender:
    """Sends spans about once a second.

    Parameters
    ----------
    export
        Sends a batch, and returns whether the collector took it; called in the thread.
    spans_max
        Spans that wait at once.
    wait_seconds
        Time between two batches where fewer spans wait than a batch has.
    """

    def __init__(
        self,
        export: Callable[[Sequence[Span]], bool],
        *,
        spans_max: int = SPANS_MAX,
        wait_seconds: float = _WAIT_SECONDS,
    ) -> None:
        self._export = export
        self._spans_max = spans_max
        self._wait_seconds = wait_seconds
        self._waiting: deque[Span] = deque()
        self._due = threading.Event()
        self._closing = False
        # Each number has one writer: the first two the thread, the last one the scheduler.
        self._sent = 0
        self._refused = 0
        self._unsent = 0
        self._thread = threading.Thread(target=self._run, name="span sender", daemon=True)

    def start(self) -> None:
        """Begin to send."""
        self._thread.start()

    def queue_spans(self, spans: Sequence[Span]) -> None:
        """Queue the spans of an attempt; all of them are dropped where there is no room."""
        waiting = self._waiting
        if len(waiting) + len(spans) > self._spans_max:
            self._unsent += len(spans)
            return
        waiting.extend(spans)
        if len(waiting) >= _BATCH:
            self._due.set()

    def close(self, *, seconds: float = _CLOSE_SECONDS) -> None:
        """Send the spans that wait, for a limited time; the spans that are left are dropped.

        Parameters
        ----------
        seconds
            The limit, because a hand-over to another replica does not wait for a collector.
        """
        self._closing = True
        self._due.set()
        if self._thread.is_alive():
            self._thread.join(seconds)
        while self._waiting:
            self._waiting.popleft()
            self._unsent += 1

    def counts(self) -> Mapping[str, int]:
        """Return how many spans were sent, refused by the collector, or dropped unsent."""
        return {"sent": self._sent, "refused": self._refused, "dropped": self._unsent}

    def _run(self) -> None:
        while not self._closing:
            self._due.wait(self._wait_seconds)
            self._due.clear()
            while batch := self._taken():
                if self._export(batch):
                    self._sent += len(batch)
                else:
                    self._refused += len(batch)

    def _taken(self) -> list[Span]:
        waiting, batch = self._waiting, list[Span]()
        while waiting and len(batch) < _BATCH:
            try:
                batch.append(waiting.popleft())
            except IndexError:  # `close` was faster
                break
        return batch
