"""The variation of a script that a hunt plays again."""

from __future__ import annotations

import pytest

from moorage.base.rng import Streams
from moorage_lab.fault_sim import acts
from moorage_lab.fault_sim.acts import Script
from moorage_lab.fault_sim.hunt import varied


@pytest.mark.parametrize(("setup", "leaves_out"), [("default", True), ("gangs at permit", False)])
def test_an_act_may_be_left_out_unless_a_group_at_permit_waits_for_it(
    setup: str, leaves_out: bool
) -> None:
    made = [acts.Delete(at=float(at), kind="Pod", name=f"p{at}") for at in range(400)]
    script = Script(seed=1, replicas=1, nodes=[], acts=list(made), setup=setup)
    other = varied(script, 2, Streams(1).stream("steering"))
    left = {act.name for act in other.acts if isinstance(act, acts.Delete)}
    assert (len(left) < len(made)) == leaves_out
    assert len(other.acts) > len(left)  # some come twice
    assert [act.at for act in other.acts] == sorted(act.at for act in other.acts)
