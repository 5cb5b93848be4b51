"""Ways that fail late, each played alone, and the look at a cluster that is quiet for a while."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from moorage.fault_sim import acts
from moorage.fault_sim.acts import Script
from moorage.fault_sim.course import play
from moorage.fault_sim.users.trouble import ERRANDS, TROUBLE
from moorage.fault_sim.users.wants import Want
from moorage.state.queue import SchedulingQueue
from moorage.testing.builders import node_manifest, pod_manifest
from tests.fault_sim.one_want import one_want

_BINDS_NOBODY = {"_slow_reports", "_member_refused"}  # what they wait for never comes


@pytest.mark.parametrize("want", [*TROUBLE, *ERRANDS], ids=lambda want: want.__name__)
@pytest.mark.parametrize("seed", [1, 2])
def test_every_invariant_holds_where_a_way_fails_late(want: Want, seed: int) -> None:
    setup = "errand" if want in ERRANDS else "default"
    outcome = play(one_want(want, seed=seed, setup=setup, rest_seconds=60.0))
    assert [each.text for each in outcome.breaches] == []
    assert outcome.bound > 0 or want.__name__ in _BINDS_NOBODY


def test_a_rest_ends_an_errand_that_would_outlast_it() -> None:
    """A variation of a script may leave out that the pod is deleted."""
    [want] = [want for want in ERRANDS if want.__name__ == "_holder_leaves_errand"]
    whole = one_want(want, seed=1, setup="errand", rest_seconds=60.0)
    kept = [act for act in whole.acts if not isinstance(act, acts.Delete)]
    outcome = play(msgspec.structs.replace(whole, acts=kept))
    assert len(kept) < len(whole.acts)
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
    told = [(each.invariant, each.seconds < 20.0) for each in play(script).breaches]
    assert ("no-lost-wakeup", True) in told
