"""Settings of the garbage collector in a process that lives long."""

from __future__ import annotations

import gc

import pytest

from moorage.base.memory import settle_memory


@pytest.mark.parametrize("collect", [True, False])
def test_present_objects_are_taken_out_of_collection(collect: bool):
    before = gc.get_threshold()
    cycle: list[object] = []
    cycle.append(cycle)
    try:
        settle_memory(collect=collect)
        assert gc.get_threshold() == (10_000, 100, 100)
        assert gc.get_freeze_count() > 0
        assert not any(each is cycle for each in gc.get_objects())
    finally:
        gc.unfreeze()
        gc.set_threshold(*before)
