"""How much of a pod's attempt is wanted: for attempts that are part of something larger."""

from __future__ import annotations

from typing import Final

import msgspec

from moorage.snapshot.view import NodeView


class Scope(msgspec.Struct, frozen=True):
    """The bounds of one attempt.

    Parameters
    ----------
    within
        The rows it may choose from, as if there were no others; None means all. Plugins still
        see the whole cluster before they filter.
    post_filter
        Whether PostFilter looks for a way when no row is feasible.
    explain
        Whether preemption leaves a report behind.
    """

    within: NodeView | None = None
    post_filter: bool = True
    explain: bool = False


WHOLE: Final = Scope()
"""An ordinary attempt: every row, PostFilter included."""
