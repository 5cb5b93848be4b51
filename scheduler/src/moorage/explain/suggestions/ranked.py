"""A suggestion that was tried, with its size."""

from __future__ import annotations

from typing import Final

import msgspec

from moorage.explain.answer import Suggestion

WAIT: Final = 0.0
MEMBER: Final = 1.0
REQUEST: Final = 2.0
"""Plus ten times the share of the request that is given up: 2 to 12."""
REQUEST_SHARE: Final = 10.0
TOLERATION: Final = 3.0
PART: Final = 4.0
UNCORDON: Final = 5.0
LABEL: Final = 5.2
UNTAINT: Final = 5.4
MINIMUM: Final = 5.6
MOVE: Final = 5.8
EVICT: Final = 6.0
"""Plus a twentieth for each further pod, to 6.4 at most."""
SCALE: Final = 6.5
PRIORITY: Final = 7.0
"""Plus a tenth for each victim, to 8 at most."""
AGAINST_BUDGET: Final = 8.5
"""Of an eviction that a disruption budget does not allow now."""
NODE: Final = 9.0
LARGER_NODE: Final = 9.5


class RankedSuggestion(msgspec.Struct, frozen=True):
    """A suggestion and its size; the smallest size is listed first.

    Parameters
    ----------
    size
        One of the sizes of this module: how much the change costs others, a convention.
    suggestion
        The suggestion.
    """

    size: float
    suggestion: Suggestion
