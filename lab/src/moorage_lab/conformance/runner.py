"""The conformance runner: kube-scheduler's recorded decisions against moorage's own.

Flow: `recordings` (files to cases) -> `needs` and `case` (case to
answer, or what is missing) -> `faults` (known faults of kube-scheduler) -> `compare` (field by
field) -> `report`. The command line calls `check_recordings`.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import msgspec

from moorage.base.errors import MoorageError
from moorage.framework.registry import Registry
from moorage.plugins.in_tree import in_tree_registry
from moorage_lab.conformance import extender
from moorage_lab.conformance.case import Unsupported, run_case
from moorage_lab.conformance.compare import Difference, compare
from moorage_lab.conformance.faults import without_faults
from moorage_lab.conformance.recordings import Case, count_cases, read_cases, recording_files
from moorage_lab.conformance.report import Report


def check_recordings(
    paths: Sequence[str | Path],
    *,
    registry: Registry | None = None,
    version: str = "",
    progress: TextIO | None = None,
) -> Report:
    """Run recordings and return the report.

    Parameters
    ----------
    paths
        Recordings, or directories of them.
    registry
        The plugins to check; the in-tree ones when not given.
    version
        The version to emulate; "" for the one with which each case was recorded.
    progress
        Where the progress is shown, if that is a terminal.

    Raises
    ------
    UsageError
        A path does not exist, holds no recordings, or is not readable as one.
    """
    plugins = in_tree_registry() if registry is None else registry
    files = recording_files(paths)
    report = Report()
    shown = _Progress(files, progress)
    for path in files:
        for case in read_cases(path):
            shown.count_case(path)
            check_case(_emulating(case, version), plugins, report)
    shown.erase_line()
    return report


def _emulating(case: Case, version: str) -> Case:
    if not version:
        return case
    scenario = msgspec.structs.replace(case.scenario, emulated_version=version)
    return msgspec.structs.replace(case, scenario=scenario)


def check_case(case: Case, registry: Registry, report: Report) -> None:
    """Run one case, compare it and add it to the report.

    A case in which moorage raises an error counts as different, never as missing.
    """
    scenario, expected = case.scenario, _without_empty_points(case.expected)
    try:
        answer = run_case(scenario, registry)
    except Exception as error:
        kind = "" if isinstance(error, MoorageError) else f"{type(error).__name__}: "
        broken = Difference(scenario.name, "", "exception", "", "an answer", f"{kind}{error}")
        report.add_compared(scenario.family, [broken])
        return
    if isinstance(answer, Unsupported):
        report.add_unsupported(scenario.family, answer.needs)
        return
    if scenario.mode == "extender":
        expected, answer = (
            extender.comparable(expected),
            extender.comparable(answer),
        )
    expected, faults = without_faults(scenario.name, expected, answer)
    report.add_compared(scenario.family, compare(scenario.name, expected, answer), faults)


def _without_empty_points(expected: dict[str, object]) -> dict[str, object]:
    """Leave out extension points that a recording lists as null: they have no plugins."""
    profiles = expected.get("profiles")
    if not isinstance(profiles, dict):
        return expected
    cleaned = {
        name: {point: plugins for point, plugins in points.items() if plugins}
        for name, points in profiles.items()
    }
    return expected | {"profiles": cleaned}


class _Progress:
    """A progress line on a terminal; prints nothing elsewhere."""

    def __init__(self, files: Sequence[Path], stream: TextIO | None) -> None:
        self._stream = stream if stream is not None and stream.isatty() else None
        self._total = count_cases(files) if self._stream is not None else 0
        self._done = 0

    def count_case(self, path: Path) -> None:
        """Count one case; the line is written for every tenth."""
        self._done += 1
        if self._stream is not None and self._done % 10 == 0:
            name = path.name.partition(".")[0]
            self._stream.write(f"\r\x1b[K{self._done}/{self._total} cases, {name}")
            self._stream.flush()

    def erase_line(self) -> None:
        """Erase the line."""
        if self._stream is not None:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
