"""The devices that a trial counts as free, although pods have them.

A question writes `GIVEN_BACK` into the cycle state of its attempt, and a plugin that counts devices
reads it. No attempt of a scheduler has it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from moorage.api.devices import ResourceClaim
from moorage.framework.cycle_state import StateKey

GIVEN_BACK: Final[StateKey[Callable[[ResourceClaim], bool]]] = StateKey("devices given back")
"""Says of a claim with devices whether they count as free."""
