"""What nodes really use, as a source of metrics says; `service` brings it beside decisions.

A plugin asks for the report of a source when it is made, and reads the latest loads in its answers.
Where nobody fetches (what-if, conformance, tests of decisions), a report has no loads.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from moorage.config.scheduler_plugins.trimaran import LoadSource

CPU_LOAD: Final = "CPU"
MEMORY_LOAD: Final = "Memory"
AVERAGE: Final = "AVG"
STANDARD_DEVIATION: Final = "STD"
LATEST: Final = "Latest"


class Load(msgspec.Struct, frozen=True):
    """One metric of one node.

    Parameters
    ----------
    type
        ``CPU`` or ``Memory``; of other types nothing is read.
    operator
        ``AVG``, ``STD``, ``Latest``, or empty.
    value
        Percent of the capacity.
    """

    type: str
    operator: str = ""
    value: float = 0.0


class NodeLoads(msgspec.Struct, frozen=True):
    """The loads of all nodes.

    Parameters
    ----------
    end_seconds
        The end of the time that they are about; Unix time.
    by_node
        The metrics of each node that has any.
    """

    end_seconds: int
    by_node: Mapping[str, tuple[Load, ...]]


class LoadReport:
    """The latest loads of one source.

    Attributes
    ----------
    latest
        None until the first answer; the last answer where a later call fails.
    """

    def __init__(self) -> None:
        self.latest: NodeLoads | None = None

    def renew(self, loads: NodeLoads | None) -> None:
        """Take newer loads; None where the source has none at all."""
        self.latest = loads


class LoadReports:
    """The sources that plugins ask for, and the report of each."""

    def __init__(self) -> None:
        self.by_source: dict[LoadSource, LoadReport] = {}

    def report_of(self, source: LoadSource) -> LoadReport:
        """Return the report of a source; all plugins share it."""
        return self.by_source.setdefault(source, LoadReport())
