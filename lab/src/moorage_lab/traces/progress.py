"""The progress of an experiment, and the time it still takes, as a line."""

from __future__ import annotations

from collections.abc import Callable

from moorage.base.clock import NS_PER_SECOND, Clock

_EVERY_NS = NS_PER_SECOND // 2


class ProgressLine:
    """Tells the share of an experiment that is done.

    Parameters
    ----------
    total, known
        All runs, and those that were finished before.
    clock
        Measures the time.
    write
        Gets a line.
    often
        Whether lines may come while a run goes on, as on a terminal; else one for each run.
    """

    def __init__(
        self, total: int, known: int, *, clock: Clock, write: Callable[[str], None], often: bool
    ) -> None:
        self._total = total
        self._known = known
        self._clock = clock
        self._write = write
        self._often = often
        self._begin_ns = clock.monotonic_ns()
        self._shown_ns = self._begin_ns - _EVERY_NS
        self._shown_runs = known

    def show_share(self, done: int, share: float) -> None:
        """Write a line, unless one was written a moment ago.

        Parameters
        ----------
        done
            Runs that are finished, those that were known included.
        share
            Of the current run, from 0 to 1.
        """
        now_ns = self._clock.monotonic_ns()
        finished = done > self._shown_runs
        if not finished and (not self._often or now_ns - self._shown_ns < _EVERY_NS):
            return
        self._shown_ns, self._shown_runs = now_ns, done
        self._write(self.line(done, share, now_ns))

    def line(self, done: int, share: float, now_ns: int) -> str:
        """Return the line for a moment, monotonic nanoseconds."""
        made = done + share - self._known
        left = self._total - done - share
        text = f"{done} of {self._total} runs"
        if made > 0 and left > 0:
            seconds = (now_ns - self._begin_ns) / NS_PER_SECOND * left / made
            text += f", {_duration_text(seconds)} left"
        return text


def _duration_text(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"
