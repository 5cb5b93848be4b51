"""The pod groups that were tried and have no place, with the start of their wait."""

from __future__ import annotations

from collections.abc import Collection, Hashable

from moorage.base.clock import NS_PER_SECOND, Clock


class WaitingGroups:
    """The waiting times of groups: shows whether a group is stuck, and whether its wait grows.

    Parameters
    ----------
    clock
        Waits by its monotonic time.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since_ns: dict[Hashable, int] = {}

    def attempted(self, key: Hashable, *, placed: bool) -> None:
        """Note whether an attempt gave a group its places."""
        if placed:
            self._since_ns.pop(key, None)
        else:
            self._since_ns.setdefault(key, self._clock.monotonic_ns())

    def waits(self, known: Collection[Hashable]) -> list[float]:
        """Return the seconds since the first attempt of every group that waits.

        Parameters
        ----------
        known
            All existing groups; other groups are forgotten.
        """
        self._since_ns = {key: since for key, since in self._since_ns.items() if key in known}
        now_ns = self._clock.monotonic_ns()
        return [(now_ns - since) / NS_PER_SECOND for since in self._since_ns.values()]
