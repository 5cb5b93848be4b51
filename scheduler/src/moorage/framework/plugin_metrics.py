"""Numbers that a plugin keeps for its own metrics.

A plugin declares them as its capability `own_metrics`. The metrics page reads them by the name of
the metric, so that the page depends on no plugin.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TypeAlias

import msgspec

Labels: TypeAlias = tuple[str, ...]
"""Values of a metric's labels, in the order of the metrics catalogue."""


class PluginMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers that one plugin of one profile reports to the metrics.

    Parameters
    ----------
    counters
        Name of a counter to its numbers by labels. The numbers of all profiles are added up.
    observations
        Name of a histogram to the observations since the last reading: labels and value. Showing
        the histogram takes them out.
    """

    counters: Mapping[str, Mapping[Labels, float]] = {}
    observations: Mapping[str, deque[tuple[Labels, float]]] = {}
