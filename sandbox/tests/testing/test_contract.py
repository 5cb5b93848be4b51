"""The contract check: a plugin that keeps the contract passes, and each breach is reported.

Each check is shown to fail by a plugin that breaks it. Left out: what the engine does with a breach
(``scheduler/tests/framework/test_guarded.py``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moorage import plugin
from moorage.base.clock import ManualClock
from moorage.base.errors import ConfigError
from moorage_sandbox.testing.contract import check_contract

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "plugins"
CLOCK = ManualClock()


def faults(value: object) -> dict[str, str]:
    """Return the first fault of each check that a plugin fails."""
    report = check_contract(value, clusters=8, clock=CLOCK)
    return {fault.check: fault.text for fault in reversed(report.faults)}


@pytest.mark.parametrize(
    "reference",
    [
        "fewest_pods.py:FewestPods",
        "keep_headroom.py:KeepHeadroom",
        "no_spot.py:no_spot",
        "prefer_green.py:prefer_green",
        "warm_up.py:WarmUp",
        "tell_owner.py:TellOwner",
    ],
)
def test_the_sample_plugins_keep_the_contract(reference: str) -> None:
    report = check_contract(f"{EXAMPLES}/{reference}", clusters=5)
    assert (report.faults, report.clusters, report.pods > 5) == ((), 5, True)


class Skips:
    """Says Skip of every pod, so that its Filter is never asked."""

    def pre_filter(self, state: Any, pod: Any, snapshot: Any) -> Any:
        return plugin.SKIP

    def filter_node(self, state: Any, pod: Any, node: Any) -> bool:
        return True


class Sorts:
    """Sorts by age."""

    def sort_key(self, priority: int, timestamp_ns: int, pod: Any) -> Any:
        return (timestamp_ns,)


@pytest.mark.parametrize(
    ("value", "unasked"),
    [
        pytest.param(Skips, ("Filter",), id="a Filter after a PreFilter that skips"),
        pytest.param(Sorts, (), id="QueueSort, whose calls are not measured"),
        pytest.param(f"{EXAMPLES}/warm_up.py:WarmUp", (), id="a point after the decision"),
    ],
)
def test_points_that_were_never_called_are_reported(value: object, unasked: tuple[str]) -> None:
    report = check_contract(value, clusters=3, clock=CLOCK)
    assert (report.faults, report.unasked) == ((), unasked)


@plugin.score
def too_good(pod: Any, node: Any) -> float:
    return 101


@plugin.filter
def no_answer(pod: Any, node: Any) -> Any:
    return 7


@plugin.filter
def breaks_on_spot(pod: Any, node: Any) -> bool:
    return bool(node.labels["example.com/spot"])


class Counts:
    """Answers another score at each call."""

    calls = 0

    def score_node(self, state: Any, pod: Any, node: Any) -> int:
        Counts.calls += 1
        return Counts.calls % 100


@plugin.filter
def writes(pod: Any, node: Any) -> bool:
    pod.labels["seen"] = node.name
    return True


class SaysPodsDoNotMatter:
    """Its score changes with the pods on a node, but it declares that nothing changes it."""

    capabilities = plugin.Capabilities(score_reads=plugin.Reads.NODE, shape_parts=())

    def score_node(self, state: Any, pod: Any, node: Any) -> int:
        return max(0, 100 - 30 * len(list(node.pods)))


@plugin.filter
def slow(pod: Any, node: Any) -> bool:
    CLOCK.advance_ns(2_000_000_000)
    return True


@plugin.permit
def breaks_late(pod: Any, node_name: str) -> Any:
    raise RuntimeError("boom")


@pytest.mark.parametrize(
    ("value", "check", "text"),
    [
        pytest.param(too_good, "answers", "101", id="a score above 100"),
        pytest.param(no_answer, "answers", "7", id="a Filter that answers a number"),
        pytest.param(breaks_on_spot, "answers", "example.com/spot", id="a Filter that raises"),
        pytest.param(Counts, "twice", "Score of node", id="another answer to the same question"),
        pytest.param(writes, "unchanged", "changed pod", id="a Filter that changes the pod"),
        pytest.param(
            SaysPodsDoNotMatter, "reuse", "a declared capability", id="a capability that is untrue"
        ),
        pytest.param(slow, "time", "Filter took", id="a call that takes seconds"),
        pytest.param(breaks_late, "binding", "boom", id="a Permit that raises"),
    ],
)
def test_each_breach_is_reported_by_its_check(value: object, check: str, text: str) -> None:
    found = faults(value)
    assert text in found[check]


def test_the_same_seed_finds_the_same_faults() -> None:
    assert (
        check_contract(too_good, clusters=3).faults == check_contract(too_good, clusters=3).faults
    )


def test_a_value_that_is_no_plugin_is_refused() -> None:
    with pytest.raises(ConfigError, match="a function without a decorator is no plugin"):
        check_contract(len)
