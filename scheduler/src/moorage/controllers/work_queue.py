"""Queue of keys: each key is queued once, has one worker at a time, and is retried after a failure.

Place in the flow: `views` reports a change to a controller, the controller adds the object's key,
and a worker takes the key.

Notes
-----
Mirrors kubernetes v1.36 client-go util/workqueue (the queue, the delaying queue and the
exponential rate limiter; the overall limit of retries is left out).
"""

from __future__ import annotations

import asyncio
from collections import deque
from typing import Final, Generic, TypeVar

from moorage.client.objects import Key

KeyT = TypeVar("KeyT", bound=tuple[str, ...])

_FIRST_RETRY_SECONDS: Final = 0.005
_LAST_RETRY_SECONDS: Final = 1000.0
_DOUBLINGS_MAX: Final = 18  # beyond it the cap counts anyway


class WorkQueue(Generic[KeyT]):
    """A queue of keys.

    A key that is added while a worker has it is queued again when the worker is done.
    """

    def __init__(self) -> None:
        self._ready: deque[KeyT] = deque()
        self._queued: set[KeyT] = set()
        self._taken: set[KeyT] = set()
        self._failures: dict[KeyT, int] = {}
        # Key -> the timer that will add it; only the earliest timer counts.
        self._later: dict[KeyT, asyncio.TimerHandle] = {}
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._ready)

    def add(self, key: KeyT) -> None:
        """Queue a key."""
        if key in self._queued:
            return
        self._queued.add(key)
        if key not in self._taken:
            self._ready.append(key)
            self._changed.set()

    def add_after(self, key: KeyT, seconds: float) -> None:
        """Queue a key after some time; an earlier timer stays."""
        if seconds <= 0:
            self.add(key)
            return
        loop = asyncio.get_running_loop()
        known = self._later.get(key)
        if known is not None:
            if known.when() <= loop.time() + seconds:
                return
            known.cancel()
        self._later[key] = loop.call_later(seconds, self._due, key)

    def retry(self, key: KeyT) -> None:
        """Queue a key again after a pause that grows with each failure since `forget_failures`."""
        count = self._failures.get(key, 0)
        self._failures[key] = min(count + 1, _DOUBLINGS_MAX)
        self.add_after(key, min(_FIRST_RETRY_SECONDS * 2**count, _LAST_RETRY_SECONDS))

    def forget_failures(self, key: KeyT) -> None:
        """Reset the failure count of a key."""
        self._failures.pop(key, None)

    async def take_key(self) -> KeyT:
        """Wait for a key and take it; `finish_key` must follow."""
        while not self._ready:
            self._changed.clear()
            await self._changed.wait()
        key = self._ready.popleft()
        self._queued.discard(key)
        self._taken.add(key)
        return key

    def finish_key(self, key: KeyT) -> None:
        """Give back a key that was taken."""
        self._taken.discard(key)
        if key in self._queued:
            self._ready.append(key)
            self._changed.set()

    def close(self) -> None:
        """Cancel all timers."""
        for timer in self._later.values():
            timer.cancel()
        self._later.clear()

    def _due(self, key: KeyT) -> None:
        self._later.pop(key, None)
        self.add(key)


ObjectQueue = WorkQueue[Key]
"""A queue of (namespace, name)."""
