"""Records the writes of a controller that its watch has not shown yet.

Without it a second look, right after pods were created, would count too few and create them
again. Pods are named before they are created, so each is waited for by its name.

Notes
-----
After kubernetes v1.36 pkg/controller/controller_utils.go (ControllerExpectations), which counts
creations and knows deletions by name; here both are known by name.
"""

from __future__ import annotations

from typing import Final

from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.client.objects import Key

# A watch that has not shown something by then never will (ExpectationsTimeout upstream).
_TIMEOUT_NS: Final = 300 * NS_PER_SECOND


class Expectations:
    """Creations and deletions to be seen, by the object they were made for.

    Parameters
    ----------
    clock
        Says when to wait no longer.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        # Owner -> (what is to appear or to go -> when to stop waiting, monotonic nanoseconds).
        self._awaited: dict[Key, dict[tuple[str, str], int]] = {}

    def expect(self, owner: Key, *written: tuple[str, str]) -> None:
        """Wait for creations, `created` of a name, or deletions, `deleted` of a uid."""
        until_ns = self._clock.monotonic_ns() + _TIMEOUT_NS
        self._awaited.setdefault(owner, {}).update(dict.fromkeys(written, until_ns))

    def seen(self, owner: Key, written: tuple[str, str]) -> None:
        """Take in that something was seen, or will not happen."""
        awaited = self._awaited.get(owner)
        if awaited is not None:
            awaited.pop(written, None)
            if not awaited:
                del self._awaited[owner]

    def fulfilled(self, owner: Key) -> bool:
        """Whether everything was seen, or is not waited for any longer."""
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
