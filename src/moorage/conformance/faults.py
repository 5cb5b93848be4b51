"""Recorded faults of kube-scheduler v1.36.2: where a recording is wrong, and moorage differs.

Read by `runner` before the comparison. The list is exact: a place that it does not name has to be
equal, and so has everything around a place that it names. The tests ask that each place differs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

Json = dict[str, Any]


class Fault(NamedTuple):
    """A fault of kube-scheduler that recordings hold."""

    subject: str
    pods: Mapping[str, tuple[str, ...]]
    """By case, the pods whose rows follow from the fault."""


FAULTS: Final[tuple[Fault, ...]] = (
    Fault(
        "counters and constraints of a rejected device stay taken "
        "(kubernetes#140436, fixed in v1.36.3)",
        {
            "public/dra/evaluate/006": ("default/p03", "default/p06", "default/p07", "default/p08"),
            "public/dra/evaluate/020": ("default/p01", "default/p02", "default/p03"),
            "public/dra/evaluate/034": ("default/p01", "default/p02"),
            "public/dra/evaluate/048": ("default/p03",),
            "public/dra/evaluate/062": ("team-b/p07", "default/p08"),
            "public/dra/evaluate/076": ("default/p01", "default/p07"),
            "public/dra/sequence/020": ("default/p03",),
            "public/dra/sequence/034": ("default/p01", "default/p02", "default/p03"),
            "public/dra/sequence/048": ("default/p02", "default/p07"),
        },
    ),
)


def without_faults(case: str, expected: Json, answer: Json) -> tuple[Json, list[str]]:
    """Replace what a recording has at the places of known faults by moorage's answer.

    Parameters
    ----------
    case
        Name of the scenario.
    expected, answer
        ``expected`` of the recorded case, and moorage's answer in the same shape.

    Returns
    -------
    tuple of dict and list of str
        The recording to compare with, and the subject of each fault that it holds.
    """
    subjects: list[str] = []
    for fault in FAULTS:
        changed = _with_rows(expected, answer, fault.pods.get(case, ()))
        if changed != expected:
            expected = changed
            subjects.append(fault.subject)
    return expected, subjects


def _with_rows(expected: Json, answer: Json, pods: tuple[str, ...]) -> Json:
    if not pods:
        return expected
    field = "pods" if "pods" in expected else "sequence"
    ours = {row["pod"]: row for row in answer.get(field, ())}
    rows = [ours.get(row["pod"], row) if row["pod"] in pods else row for row in expected[field]]
    return expected | {field: rows}
