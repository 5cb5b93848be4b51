"""Ways that fail late, each played alone, and the look at a cluster that is quiet for a while."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from lab.tests.fault_sim.one_situation import one_situation
from moorage.state.queue import SchedulingQueue
from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.acts import Script
from moorage_lab.fault_sim.fault_run import play
from moorage_lab.fault_sim.situations import delayed_steps, late_failures
from moorage_lab.fault_sim.situations.situation import Declaration
from moorage_sandbox.testing.builders import node_manifest, pod_manifest


@pytest.mark.parametrize(
    ("setup", "situation"),
    [
        pytest.param(setup, each, id=each.name)
        for setup, table in (
            ("default", late_failures.FAILURES),
            ("delayed step", delayed_steps.FAILURES),
        )
        for each in table
    ],
)
def test_every_invariant_holds_where_a_way_fails_late(setup: str, situation: Declaration) -> None:
    outcome = play(one_situation(situation, seed=1, setup=setup, rest_seconds=60.0))
    assert [each.text for each in outcome.breaches] == []
    assert outcome.bound > 0 or situation.binds == ()


def test_a_rest_ends_a_delayed_step_that_would_outlast_it() -> None:
    """A variation of a script may leave out that the pod is deleted."""
    holder_leaves = delayed_steps.holder_leaves_delayed_step
    whole = one_situation(holder_leaves, seed=1, setup="delayed step", rest_seconds=60.0)
    without_deletion = [act for act in whole.acts if not isinstance(act, acts.Delete)]
    outcome = play(msgspec.structs.replace(whole, acts=without_deletion))
    assert len(without_deletion) < len(whole.acts)
    assert [each.text for each in outcome.breaches] == []
    assert outcome.bound == 1


def test_a_look_finds_a_pod_that_waits_though_it_could_be_placed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def deaf(self: SchedulingQueue, *event: Any, **options: Any) -> None:
        del self, event, options

    monkeypatch.setattr(SchedulingQueue, "move_all", deaf)
    script = Script(
        seed=1,
        nodes=[node_manifest("full", cpu="1")],
        acts=[
            acts.Create(at=5.0, object=pod_manifest("p", cpu="2")),
            acts.Join(at=6.0, node=node_manifest("free", cpu="4")),
            acts.Look(at=19.0),
        ],
        rest_seconds=20.0,
    )
    breaches = [(each.invariant, each.seconds < 20.0) for each in play(script).breaches]
    assert ("no-lost-wakeup", True) in breaches
