"""The text of ``moorage plugin test``, and its arguments; pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from moorage.base.errors import UsageError
from moorage_sandbox.testing.contract import ContractReport

_MEANING: Final[Mapping[str, str]] = {
    "answers": "every answer is allowed",
    "twice": "the same question has the same answer",
    "unchanged": "pods and nodes are left unchanged",
    "reuse": "decisions are the same with reused answers",
    "time": "no call takes longer than it may",
    "binding": "the points after a decision work",
}
"""By check: what holds for a plugin that passes."""


def arguments(text: str | None) -> dict[str, Any] | None:
    """Return the value of ``--args``; None without one.

    Raises
    ------
    UsageError
        It is no JSON object.
    """
    if text is None:
        return None
    try:
        values = json.loads(text)
    except ValueError as error:
        raise UsageError(f"--args: not JSON: {error}") from error
    if not isinstance(values, dict):
        raise UsageError('--args: expected an object, as {"cpuPercent": 25}')
    return values


# The points after a decision; all others are asked by the other checks.
_AFTER: Final = frozenset(("Reserve", "Permit", "PreBind", "Bind", "PostBind"))
_OF_ALL_POINTS: Final = ("unchanged", "time")


def _is_open(check: str, unasked: Sequence[str]) -> bool:
    """Whether a check says nothing about a point of the plugin, because nobody asked it."""
    if check in _OF_ALL_POINTS:
        return bool(unasked)
    return any((point in _AFTER) == (check == "binding") for point in unasked)


def lines(reference: str, report: ContractReport) -> Iterator[str]:
    """Yield the lines about one plugin."""
    yield f"{report.plugin} ({reference}): {report.clusters} clusters, {report.pods} pods"
    for check, meaning in _MEANING.items():
        faults = [fault.text for fault in report.faults if fault.check == check]
        passed = "open " if _is_open(check, report.unasked) else "ok   "
        yield f"  {'FAULT' if faults else passed}  {meaning}"
        yield from (f"         {text}" for text in faults)
    for point in report.unasked:
        yield f"  {point}: never called, as no pod came to it; test it with a StillCluster"
    for each in report.times:
        yield (
            f"  {each.point}: {each.calls} calls, {each.mean_us:.0f} us each, "
            f"{each.longest_us:.0f} us at most"
        )
