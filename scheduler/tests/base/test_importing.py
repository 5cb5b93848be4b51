"""That the garbage collector is as it was after an import."""

from __future__ import annotations

import gc

import pytest

from moorage.base.importing import without_collecting


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_rests_and_is_as_it_was_then(enabled):
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with without_collecting():
            assert not gc.isenabled()
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()
