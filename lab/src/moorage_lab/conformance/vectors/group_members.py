"""Runs a vector of upstream's tests about the order in which members of a group are tried.

The mode "members" of the conformance runner.
"""

from __future__ import annotations

from moorage.base.clock import NS_PER_SECOND
from moorage.state.queued_pod import QueuedPod, member_order
from moorage_lab.conformance.recordings import Json, Scenario


def run_members(scenario: Scenario) -> Json:
    """Return the names of the members that wait, in the order in which they are tried."""
    script = scenario.members
    assert script is not None, "a vector of mode members has members"
    pods = {pod.name: pod for pod in scenario.pending}
    waiting = [
        QueuedPod(pods[name], round(seconds * NS_PER_SECOND), attempts=attempts)
        for name, attempts, seconds in script.queued
        if name not in script.removed
    ]
    waiting.sort(key=lambda each: member_order(each, scenario.emulated_version))
    return {"order": [each.pod.name for each in waiting]}
