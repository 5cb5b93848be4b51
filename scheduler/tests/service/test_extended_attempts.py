"""Attempts of single pods with extenders: which pods they take, and where the decision goes.

Not covered: what extenders are asked (scheduler/tests/engine/extenders), and failures
(test_failure_paths).
"""

from __future__ import annotations

from typing import Any, cast

import pytest

from moorage.engine.decision import Decision, Outcome
from moorage.engine.select_node import smallest_name
from moorage.framework.extender import in_order
from moorage.service.attempts.extended_attempts import ExtendedAttempts
from moorage.service.attempts.outcomes import Outcomes
from moorage.service.core import AskingCycle
from moorage.state.queued_pod import QueuedPod
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.engine.extenders.test_cycle import Scripted
from scheduler.tests.framework.builders import Fake, profile
from scheduler.tests.service.build import World, node, pod


class Asking(World):
    """A world of one node with an extender that is interested in pods named "asked"."""

    def __init__(self) -> None:
        super().__init__()
        self.cache.add_node(node("n1"))
        made = profile(Fake("X"), snapshot=self.core.snapshot)
        made.extenders = in_order([Scripted("e", self.log, pods=("asked",), passing=["n1"])])
        mine = cast("Any", self)
        self.attempts = ExtendedAttempts(
            {"default-scheduler": AskingCycle(made, self.core.snapshot, smallest_name)},
            skipping=self.skipping(),
            outcomes=Outcomes(
                binding_cycles=mine, failures=self.handler(), evictor=None, facts=self.facts
            ),
        )

    def carry_out(self, profile: object, queued: QueuedPod, decision: Decision) -> None:
        assert decision.outcome is Outcome.BIND
        self.log.append(f"bind {queued.pod.name} to {decision.node_name}")


@pytest.mark.parametrize(
    ("name", "fields", "taken"),
    [
        pytest.param("asked", {}, True, id="an extender is interested"),
        pytest.param("plain", {}, False, id="no extender is interested"),
        pytest.param("asked", {"schedulerName": "other"}, False, id="a profile without extenders"),
    ],
)
def test_a_pod_is_taken_if_an_extender_takes_part(
    name: str, fields: dict[str, Any], taken: bool
) -> None:
    world = Asking()
    assert world.attempts.takes(world.popped(pod(name, **fields))) is taken


def test_the_decision_is_carried_out_after_the_extenders_have_answered() -> None:
    world = Asking()
    asking = world.attempts.attempt(world.popped(pod("asked")))
    assert asking is not None
    assert world.log == []

    async def main() -> None:
        await asking

    run_virtual(main(), world.clock)
    assert world.log == ["e passing n1", "bind asked to n1"]


def test_no_extender_is_asked_about_a_pod_that_needs_no_attempt() -> None:
    world = Asking()
    assert world.attempts.attempt(world.popped(pod("asked", deleted=True))) is None
    assert world.log == ["event FailedScheduling"]
