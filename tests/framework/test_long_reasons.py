"""Reasons of plugins from outside that are long, many, or code of the plugin."""

from __future__ import annotations

import pytest

from moorage.base.outside_texts import TEXT_MAX
from moorage.framework.checking import as_status
from moorage.framework.status import Code, Status, unschedulable


class Interrupting(Status, frozen=True):
    """A Status whose attributes are code of the plugin."""

    @property
    def ok(self) -> bool:
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param("a" * 50_000_000, id="a text"),
        pytest.param(unschedulable("a" * 50_000_000), id="a Status"),
        pytest.param(unschedulable(*["a" * 1000] * 50_000), id="a Status with 50,000 reasons"),
        pytest.param(Interrupting(Code.UNSCHEDULABLE, ("a" * 50_000_000,)), id="a subclass"),
    ],
)
def test_a_long_reason_is_cut(answer: object) -> None:
    status = as_status(answer, "Mine")
    assert type(status) is Status
    assert status.code is Code.UNSCHEDULABLE
    assert len(status.message) < 2 * TEXT_MAX
