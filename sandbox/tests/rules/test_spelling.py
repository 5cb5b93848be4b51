"""How rules spell the names of properties: `escaped`, and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.cel.values import escaped, unescaped

_PARTS = ("__", "_", ".", "-", "/", "dot", "dash", "slash", "underscores", "in", "x")


@pytest.mark.parametrize(
    ("name", "spelled"),
    [
        pytest.param("in", "__in__", id="a word of the language"),
        pytest.param("example.com/x-y", "example__dot__com__slash__x__dash__y", id="special signs"),
        pytest.param("a__dot__", "a__underscores__dot__underscores__", id="the spelling of a sign"),
    ],
)
def test_the_spelling_of_a_name(name: str, spelled: str) -> None:
    assert escaped(name) == spelled
    assert unescaped(spelled) == name


@given(st.lists(st.sampled_from(_PARTS)).map("".join))
def test_every_name_comes_back(name: str) -> None:
    assert unescaped(escaped(name)) == name
