"""The number of bindings under way, and the signal that wakes the pump.

`pump` stops deciding while too many bindings are under way; `binding_cycle` counts them. Neither
knows the other: both are given the same `BindingSlots`.
"""

from __future__ import annotations

import asyncio
from typing import Final

# Bindings under way at once; beyond it deciding waits for the API server. A guess: enough to fill
# a connection pool many times over, few enough that a slow server is not buried.
_BINDINGS_MAX: Final = 512


class BindingSlots:
    """Counts the pods whose binding is on its way to the API server.

    A pod that waits for a plugin, at Permit or in PreBind, does not count: however many pods wait,
    other pods are scheduled meanwhile.

    Parameters
    ----------
    wake
        Set whenever a slot becomes free, so that a waiting pump goes on; None where no pump waits.

    Attributes
    ----------
    used
        Number of bindings under way. The number may exceed the maximum: pods that Permit lets go
        together are bound together.
    """

    def __init__(self, wake: asyncio.Event | None = None) -> None:
        self.wake = asyncio.Event() if wake is None else wake
        self.used = 0

    @property
    def full(self) -> bool:
        """Whether deciding has to wait."""
        return self.used >= _BINDINGS_MAX

    def take_slot(self) -> None:
        """Count a binding that begins."""
        self.used += 1

    def free(self) -> None:
        """Count a binding that ended, and wake the pump."""
        self.used -= 1
        self.wake.set()
