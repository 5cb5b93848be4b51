"""Records the writes of a controller that its watch has not shown yet.

Without this record, a second sync right after pods were created would count too few pods and create
them again. Pods are named before they are created, so each creation is expected by name.

Notes
-----
After kubernetes v1.36 pkg/controller/controller_utils.go (ControllerExpectations), which counts
creations and records deletions by name; here both are recorded by name.
"""

from __future__ import annotations

from typing import Final

from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.client.objects import Key

# After this time an expectation is dropped (ExpectationsTimeout upstream).
_TIMEOUT_NS: Final = 300 * NS_PER_SECOND


class Expectations:
    """The expected creations and deletions, by owner.

    Parameters
    ----------
    clock
        Tells when an expectation has timed out.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Owner -> (token of the creation or deletion -> its timeout, monotonic nanoseconds).
        self._awaited: dict[Key, dict[tuple[str, str], int]] = {}

    def expect(self, owner: Key, *written: tuple[str, str]) -> None:
        """Expect creations (tokens of `created`) or deletions (tokens of `deleted`)."""
        until_ns = self._clock.monotonic_ns() + _TIMEOUT_NS
        self._awaited.setdefault(owner, {}).update(dict.fromkeys(written, until_ns))

    def write_shown(self, owner: Key, written: tuple[str, str]) -> None:
        """Remove an expectation: the watch has shown the write, or the write has failed."""
        awaited = self._awaited.get(owner)
        if awaited is not None:
            awaited.pop(written, None)
            if not awaited:
                del self._awaited[owner]

    def fulfilled(self, owner: Key) -> bool:
        """Whether every expectation of an owner was met or has timed out."""
        awaited = self._awaited.get(owner)
        if awaited is None:
            return True
        now_ns = self._clock.monotonic_ns()
        for written, until_ns in list(awaited.items()):
            if until_ns <= now_ns:
                del awaited[written]
        if not awaited:
            del self._awaited[owner]
        return not awaited

    def forget(self, owner: Key) -> None:
        """Forget an owner that is gone."""
        self._awaited.pop(owner, None)


def created(name: str) -> tuple[str, str]:
    """Return the token for the creation of an object of this name."""
    return ("created", name)


def deleted(uid: str) -> tuple[str, str]:
    """Return the token for the deletion of an object of this uid."""
    return ("deleted", uid)
