"""Kept amounts of states equal those computed afresh, and each state is computed once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from moorage.plugins.gpu_share import known_states
from moorage.plugins.gpu_share.categories import Fragmentation
from moorage.plugins.gpu_share.known_states import KnownStates
from moorage.plugins.gpu_share.typical import FloatArray, NodeStates, TypicalPods
from scheduler.tests.plugins.gpu_share.reference import RefNode
from scheduler.tests.plugins.gpu_share.test_categories import MODELS, nodes, shared, states


class Counted:
    """An amount for states of nodes, and how many states it was computed for."""

    def __init__(self, typical: Fragmentation | TypicalPods) -> None:
        self.states = 0
        self._compute = (
            typical.fragmentation_of if isinstance(typical, Fragmentation) else typical.unusable
        )

    def of(self, found: NodeStates, models: Sequence[str]) -> FloatArray:
        self.states += len(found.cpu_s)
        return self._compute(found, models)


def turned(found: list[RefNode]) -> list[RefNode]:
    """The same nodes, with their devices in another order."""
    return [RefNode(each.cpu, 0, each.free[::-1], each.model) for each in found]


@pytest.mark.parametrize("most", [65_536, 20], ids=["all are kept", "few are kept"])
def test_a_state_that_comes_again_has_the_same_amount(most, monkeypatch):
    monkeypatch.setattr(known_states, "_STATES_MOST", most)
    found = nodes()
    fragmentation = Fragmentation(shared())
    for counted, known in (
        (
            fragmentation.fragmentation_of,
            KnownStates(fragmentation.fragmentation_of, fragmentation.cpu_step),
        ),
        (TypicalPods(shared()).unusable, KnownStates(TypicalPods(shared()).unusable)),
    ):
        fresh = counted(states(found), MODELS).tolist()
        for start in range(0, len(found), 7):
            part = slice(start, start + 7)
            assert known.amounts_of(states(found[part]), MODELS).tolist() == fresh[part]
        assert known.amounts_of(states(turned(found)), MODELS).tolist() == fresh


def test_equal_states_are_computed_once():
    counted = Counted(TypicalPods(shared()))
    known = KnownStates(counted.of)
    found = nodes()
    known.amounts_of(states([*found, *found, *turned(found)]), MODELS)
    known.amounts_of(states(found), MODELS)
    distinct = {(each.cpu, tuple(sorted(each.free)), each.model) for each in found}
    assert counted.states == len(distinct)


def test_cpu_between_two_requests_of_the_typical_pods_is_one_state():
    counted = Counted(Fragmentation(shared()))
    known = KnownStates(counted.of, Fragmentation(shared()).cpu_step)
    parts = [RefNode(cpu, 0, [1000], "T4") for cpu in (4000, 9099, 9100, 29_999, 30_000, 90_000)]
    amounts = known.amounts_of(states(parts), MODELS).tolist()
    assert counted.states == 3
    assert amounts == Fragmentation(shared()).fragmentation_of(states(parts), MODELS).tolist()
    assert len(set(amounts)) == 3


def test_no_states_have_no_amounts():
    known = KnownStates(TypicalPods(shared()).unusable)
    none = NodeStates(np.zeros(0, np.int64), np.zeros((0, 4), np.int64), np.zeros(0, np.int64))
    assert known.amounts_of(none, MODELS).tolist() == []
