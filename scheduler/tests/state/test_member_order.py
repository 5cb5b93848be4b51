"""The order of the members of a group in 1.36 and in 1.37.

Not covered: the cases of upstream's tests (lab/tests/conformance).
"""

from __future__ import annotations

import pytest

from moorage.state.queued_pod import QueuedPod, member_order
from moorage_sandbox.testing.builders import pod


def queued(name: str, *, attempts: int, first_ns: int, last_ns: int) -> QueuedPod:
    entry = QueuedPod(pod(name), last_ns, attempts=attempts)
    entry.initial_attempt_ns = first_ns
    return entry


@pytest.mark.parametrize(
    ("version", "order"),
    [
        pytest.param("1.36", ["first", "often", "late"], id="by first attempt in 1.36"),
        pytest.param("1.37", ["often", "late", "first"], id="by attempts, then by time in 1.37"),
    ],
)
def test_members_are_ordered_by_the_rule_of_the_version(version, order):
    entries = [
        queued("late", attempts=1, first_ns=3, last_ns=5),
        queued("first", attempts=1, first_ns=1, last_ns=6),
        queued("often", attempts=2, first_ns=2, last_ns=7),
    ]
    entries.sort(key=lambda each: member_order(each, version))
    assert [each.pod.name for each in entries] == order
