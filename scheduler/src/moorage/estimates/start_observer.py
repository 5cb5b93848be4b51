"""The observer of a scheduler's pods: arrivals, starts, ends and run times."""

from __future__ import annotations

import math
from collections import deque
from pathlib import Path
from typing import Final

from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.estimates.known_ends import ENDING_POLICIES, declared_seconds, elapsed_seconds
from moorage.estimates.run_classes import classes_of
from moorage.estimates.run_time_book import RunTimeBook
from moorage.estimates.track_record import TrackRecord
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import RESOURCES

ARRIVALS_MOST: Final = 200
"""Pods that came last, from which roll-outs draw what comes next: a guess."""
_ARRIVALS_LEAST: Final = 20
_MEMORY_SECONDS: Final = 86_400.0
"""An arrival counts for e times less after so long: a guess, as load comes in days."""
_OBSERVED_LEAST: Final = 3600.0
"""A burst of pods counts as an hour's arrivals at most."""


class ArrivalRate:
    """How often something comes, newer arrivals counting more.

    Parameters
    ----------
    began
        Second from which on arrivals are noted.
    """

    def __init__(self, began: float) -> None:
        self._began = self._at = began
        self._level = 0.0
        self._number = 0

    def note_arrival(self, at: float) -> None:
        """Count an arrival."""
        self._level = self._level_at(at) + 1.0
        self._at = at
        self._number += 1

    def per_second(self, now: float) -> float:
        """Return the rate; 0 while too few came to say."""
        if self._number < _ARRIVALS_LEAST:
            return 0.0
        observed = max(now - self._began, _OBSERVED_LEAST)
        return self._level_at(now) / (_MEMORY_SECONDS * -math.expm1(-observed / _MEMORY_SECONDS))

    def _level_at(self, now: float) -> float:
        return self._level * math.exp(-max(0.0, now - self._at) / _MEMORY_SECONDS)


class StartObserver:
    """Keeps what estimates rest on.

    Parameters
    ----------
    clock
        The time.
    learns
        Whether run times are learned.
    file
        The file of learned run times; None where they are not written.

    Attributes
    ----------
    book
        The learned run times.
    record
        How often intervals held.
    arrivals
        The pods that came last.
    """

    def __init__(self, clock: Clock, *, learns: bool, file: Path | None = None) -> None:
        self._clock = clock
        self._learns = learns
        self.file = file
        self.book = RunTimeBook()
        self.record = TrackRecord()
        self.arrivals: deque[Pod] = deque(maxlen=ARRIVALS_MOST)
        self._rate = ArrivalRate(self.now)

    @property
    def now(self) -> float:
        """Seconds since the Unix epoch."""
        return self._clock.now_ns() / NS_PER_SECOND

    @property
    def arrivals_a_second(self) -> float:
        """The rate at which pods come; 0 while too few came to say."""
        return self._rate.per_second(self.now)

    def pod_came(self, pod: Pod) -> None:
        """Note a new pod without a node."""
        self.arrivals.append(pod)
        self._rate.note_arrival(self.now)

    def pod_started(self, pod: Pod) -> None:
        """Note that a pod got its node."""
        self.record.note_start(pod.uid, self.now)

    def pod_gone(self, pod: Pod) -> None:
        """Note that a pod ended, or was deleted; only the run time of one that ended is learned."""
        if not pod.spec.node_name:
            self.record.note_gone(pod.uid)
            return
        if self._learns:
            seconds = run_seconds(pod, self._clock.now_ns())
            if seconds is not None:
                classes = classes_of(pod, PodInfo(pod).part(RESOURCES).value.filter)
                self.book.note_run(classes, seconds, declared=declared_seconds(pod))


def run_seconds(pod: Pod, now_ns: int) -> float | None:
    """Return how long a pod ran that ended by itself at a moment; None for any other pod."""
    if pod.spec.restart_policy not in ENDING_POLICIES or pod.metadata.deletion_timestamp:
        return None
    return elapsed_seconds(pod, now_ns=now_ns) or None
