"""The report: how often the decisions agree, which plugins make the differences, and how full.

Comparisons are counted one by one; of the differences only the first ones are kept whole.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import msgspec

from moorage.shadow.comparison import AGREEING, Comparison, Outcome
from moorage.shadow.fullness import Fullness

_KEPT_MOST: Final = 100
_SHARE_DECIMALS: Final = 4


class Courses(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The fullness of the cluster, really and had the configuration decided.

    Parameters
    ----------
    real, own
        The cluster as it is, and in the configuration's own course.
    own_bound
        Pods that the configuration bound in its own course.
    own_evicted, own_lost
        Pods that it evicted there for others, and those among them that no owner makes again.
    """

    real: Fullness
    own: Fullness
    own_bound: int
    own_evicted: int
    own_lost: int


class Report(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The comparison of the configuration with the real scheduler.

    Parameters
    ----------
    started, ended
        The time that was watched, RFC 3339.
    configuration
        Where the configuration comes from.
    profiles
        The schedulerNames whose pods were compared.
    compared
        Decisions that could be compared: those that agree and those that differ.
    agree, differ, not_comparable
        Numbers of decisions.
    agreement
        Share of the comparable decisions that agree, 0 to 1; None without any.
    outcomes
        Numbers by outcome.
    plugins
        Differences by the plugin that makes them.
    not_comparable_because
        Numbers by reason.
    differences
        The first differences.
    courses
        How full the cluster is; None where no course of its own was followed.
    """

    started: str
    ended: str
    configuration: str
    profiles: tuple[str, ...]
    compared: int
    agree: int
    differ: int
    not_comparable: int
    agreement: float | None
    outcomes: Mapping[str, int]
    plugins: Mapping[str, int]
    not_comparable_because: Mapping[str, int]
    differences: tuple[Comparison, ...]
    courses: Courses | None = None


class Tally:
    """Counts comparisons."""

    def __init__(self) -> None:
        self.outcomes: Counter[Outcome] = Counter()
        self._plugins: Counter[str] = Counter()
        self._because: Counter[str] = Counter()
        self._differences: list[Comparison] = []

    def add(self, comparison: Comparison) -> None:
        """Count a comparison."""
        self.outcomes[comparison.outcome] += 1
        if comparison.outcome is Outcome.NOT_COMPARABLE:
            self._because[comparison.reason] += 1
        elif comparison.differs:
            self._plugins[comparison.plugin] += 1
            if len(self._differences) < _KEPT_MOST:
                self._differences.append(comparison)

    @property
    def agree(self) -> int:
        """The number of decisions that agree."""
        return sum(self.outcomes[each] for each in AGREEING)

    @property
    def not_comparable(self) -> int:
        """The number of decisions that could not be compared."""
        return self.outcomes[Outcome.NOT_COMPARABLE]

    @property
    def differ(self) -> int:
        """The number of decisions that differ."""
        return self.outcomes.total() - self.agree - self.not_comparable

    def report(
        self,
        *,
        started: str,
        ended: str,
        configuration: str,
        profiles: tuple[str, ...],
        courses: Courses | None,
    ) -> Report:
        """Return the report; the parameters are fields of it."""
        compared = self.agree + self.differ
        return Report(
            started=started,
            ended=ended,
            configuration=configuration,
            profiles=profiles,
            compared=compared,
            agree=self.agree,
            differ=self.differ,
            not_comparable=self.not_comparable,
            agreement=round(self.agree / compared, _SHARE_DECIMALS) if compared else None,
            outcomes={each.value: self.outcomes[each] for each in Outcome},
            plugins=_ranked(self._plugins),
            not_comparable_because=_ranked(self._because),
            differences=tuple(self._differences),
            courses=courses,
        )


def _ranked(counts: Counter[str]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))
