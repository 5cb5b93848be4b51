"""What a rehearsal says is what happens in a sandbox, for random clusters and random changes.

`make what-if-agreement` plays a thousand scenarios; here are the first.
"""

from __future__ import annotations

import pytest

from tests.what_if.agreement import agreement

_FEW = 8


@pytest.mark.parametrize("seed", range(_FEW), ids=lambda seed: f"seed {seed}")
def test_what_happens_is_what_was_said(seed: int) -> None:
    """Every pod is on the node that was said, or waits if that was said."""
    outcome = agreement(seed)
    assert outcome.happened == outcome.said


def test_most_changes_lead_to_something() -> None:
    """Otherwise the agreement would say little."""
    assert sum(agreement(seed).changed for seed in range(_FEW)) >= _FEW / 2
