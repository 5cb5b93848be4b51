"""Answers of plugins from outside that are long, many, or code of the plugin."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from moorage.base.outside_texts import TEXT_MAX
from moorage.framework.checking import SortKeys, as_pre_filter, as_status
from moorage.framework.points import PreFilterResult
from moorage.framework.status import SUCCESS, Code, Status, unschedulable


class Interrupting(Status, frozen=True):
    """A Status whose attributes are code of the plugin."""

    @property
    def ok(self) -> bool:
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda: "a" * 50_000_000, id="a text"),
        pytest.param(lambda: unschedulable("a" * 50_000_000), id="a Status"),
        pytest.param(
            lambda: unschedulable(*["a" * 1000] * 50_000), id="a Status with 50,000 reasons"
        ),
        pytest.param(
            lambda: Interrupting(Code.UNSCHEDULABLE, ("a" * 50_000_000,)), id="a subclass"
        ),
    ],
)
def test_a_long_reason_is_cut(answer: Callable[[], object]) -> None:
    status = as_status(answer(), "Mine")
    assert type(status) is Status
    assert status.code is Code.UNSCHEDULABLE
    assert len(status.message) < 2 * TEXT_MAX


class Name(str):
    """A name of a node whose comparison is code of the plugin."""

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        raise KeyboardInterrupt


class Number(int):
    """A part of a key whose comparison is code of the plugin."""

    def __lt__(self, other: object) -> bool:
        raise KeyboardInterrupt


def test_names_and_keys_of_a_plugin_run_no_code_of_it() -> None:
    result, _ = as_pre_filter((PreFilterResult(frozenset([Name("n1")])), SUCCESS), "Mine")
    assert result == PreFilterResult(frozenset(["n1"]))
    read = SortKeys()
    assert read((Number(1), ("a", 2.5))) < read((Number(2), ("a", np.float64(1.5))))
