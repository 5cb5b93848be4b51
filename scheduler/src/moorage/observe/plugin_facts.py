"""The numbers of the deciding half's plugins: durations of points and plugins, and calls."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Final, TypeAlias

from moorage.base.clock import NS_PER_SECOND
from moorage.framework.status import SUCCESS_CODE, Code
from moorage.observe.catalogue import BUCKETS
from moorage.observe.series import Durations, Histogram, Histograms

_POINT: Final = BUCKETS["scheduler_framework_extension_point_duration_seconds"]
_PLUGIN: Final = BUCKETS["scheduler_plugin_execution_duration_seconds"]

SAMPLED: Final = 0.1
"""The part of attempts whose plugins are timed one by one (kubernetes v1.36,
``pkg/scheduler/schedule_one.go`` pluginMetricsSamplePercent)."""

EVALUATED: Final = ("PreFilter", "Filter", "PreScore", "Score")
"""The points whose calls ``plugin_evaluation_total`` counts."""


Lap: TypeAlias = tuple[str, str, int, int]
"""(extension point, status, its beginning, its end), both in monotonic nanoseconds."""

_BEGINS: Final = ""
# Four or five an attempt; sorting in 5000 at once made every thousandth decision wait 20 ms.
_MARKS_MOST: Final = 200


class PluginFacts:
    """Numbers about extension points and plugins, of all profiles.

    Parameters
    ----------
    now_ns
        Monotonic time, nanoseconds.
    draw
        Random numbers from 0 up to 1, which choose the attempts that are sampled.

    Attributes
    ----------
    executions
        Seconds of single calls, by (plugin, extension point, status).
    calls
        Calls that were not answered by Skip, by (plugin, extension point, profile).
    """

    def __init__(self, now_ns: Callable[[], int], draw: Callable[[], float]) -> None:
        self.now_ns = now_ns
        self.draw = draw
        self.executions: Histograms[tuple[str, str, str]] = Histograms(_PLUGIN)
        self.calls: Counter[tuple[str, str, str]] = Counter()
        self._durations: dict[tuple[str, str, str], Durations] = {}
        self._meters: list[ProfileMeter] = []

    @property
    def durations(self) -> dict[tuple[str, str, str], Histogram]:
        """Seconds of extension points, by (extension point, status, profile)."""
        for meter in self._meters:
            meter.sort_in()
        return {key: told.histogram for key, told in self._durations.items()}

    def durations_of(self, point: str, status: str, profile: str) -> Durations:
        """Return where the durations of an extension point go."""
        key = point, status, profile
        found = self._durations.get(key)
        if found is None:
            found = self._durations[key] = Durations(_POINT)
        return found

    def called_at(self, plugin: str, point: str) -> int:
        """Return how often a plugin was called at a point, whatever the profile."""
        return sum(
            count
            for (name, where, _), count in self.calls.items()
            if (name, where) == (plugin, point)
        )

    def meter(self, profile: str) -> ProfileMeter:
        """Return the meter to which the cycle of a profile reports."""
        made = ProfileMeter(self, profile)
        self._meters.append(made)
        return made

    def parts(self, profile: str, *, since_ns: int) -> dict[str, int]:
        """Return how long each extension point of a profile's last attempt took, nanoseconds.

        Parameters
        ----------
        since_ns
            When the attempt began, monotonic nanoseconds.
        """
        told: dict[str, int] = {}
        for point, _, start_ns, end_ns in self.laps(profile, since_ns=since_ns):
            told[point] = told.get(point, 0) + end_ns - start_ns
        return told

    def laps(self, profile: str, *, since_ns: int) -> list[Lap]:
        """Return the extension points of a profile's last attempt, in their order.

        Parameters
        ----------
        since_ns
            When the attempt began, monotonic nanoseconds.
        """
        meters = [meter for meter in self._meters if meter.profile == profile]
        return [lap for meter in meters for lap in meter.laps(since_ns)]


class ProfileMeter:
    """A `Meter` of one profile.

    Parameters
    ----------
    facts
        Where everything is added up.
    profile
        Name of the profile.

    Notes
    -----
    Points end four times an attempt, so only the time is taken then; `sort_in` does the rest later.
    """

    __slots__ = ("_append", "_draw", "_facts", "_marks", "meter_ns", "profile")

    def __init__(self, facts: PluginFacts, profile: str) -> None:
        self._facts = facts
        self.profile = profile
        self._marks: list[tuple[str, Code, int]] = []
        self._append = self._marks.append
        self._draw = facts.draw
        self.meter_ns = facts.now_ns

    def sample(self) -> bool:
        """Whether the plugins of the attempt that begins are timed one by one."""
        if len(self._marks) >= _MARKS_MOST:
            self.sort_in()  # between two attempts, so that `parts` finds all of the last one
        return self._draw() < SAMPLED

    def start(self) -> None:
        """Note that an extension point begins."""
        self._append((_BEGINS, SUCCESS_CODE, self.meter_ns()))

    def lap(self, point: str, code: Code) -> None:
        """Note that an extension point has ended, and the next begins."""
        self._append((point, code, self.meter_ns()))

    def laps(self, since_ns: int) -> list[Lap]:
        """Return the extension points of the last attempt, in their order.

        Parameters
        ----------
        since_ns
            When the attempt began, monotonic nanoseconds.
        """
        laps: list[Lap] = []
        last_ns = since_ns
        for point, code, at_ns in self._marks:
            if at_ns < since_ns:
                continue
            if point is not _BEGINS:
                laps.append((point, code.text, last_ns, at_ns))
            last_ns = at_ns
        return laps

    def sort_in(self) -> None:
        """Turn the times taken so far into durations; the last one still begins a point."""
        marks = self._marks
        taken: defaultdict[tuple[str, Code], list[int]] = defaultdict(list)
        last_ns = 0
        for point, code, at_ns in marks:
            taken[point, code].append(at_ns - last_ns)
            last_ns = at_ns
        taken.pop((_BEGINS, SUCCESS_CODE), None)
        for (point, code), durations_ns in taken.items():
            self._facts.durations_of(point, code.text, self.profile).extend(durations_ns)
        marks.clear()
        if last_ns:
            marks.append((_BEGINS, SUCCESS_CODE, last_ns))

    def called(self, plugin: str, point: str) -> None:
        """Count a call of a plugin."""
        self._facts.calls[plugin, point, self.profile] += 1

    def took(self, plugin: str, point: str, code: Code, *, since_ns: int) -> None:
        """Note how long one call of a plugin took."""
        took_ns = self.meter_ns() - since_ns
        self._facts.executions[plugin, point, code.text].observe(took_ns / NS_PER_SECOND)
