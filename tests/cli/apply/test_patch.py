"""The three-way difference of ``apply``, by table and by property."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage_sandbox.cli.apply.patch import (
    LAST_APPLIED,
    last_applied,
    three_way_patch,
    with_last_applied,
)


@pytest.mark.parametrize(
    ("original", "modified", "live", "patch"),
    [
        pytest.param({}, {"a": 1}, {"a": 1}, {}, id="nothing to do"),
        pytest.param({}, {"a": 1}, {"a": 2}, {"a": 1}, id="a changed value"),
        pytest.param({}, {"a": 1}, {}, {"a": 1}, id="a missing value"),
        pytest.param({"a": 1}, {}, {"a": 1}, {"a": None}, id="left the manifest"),
        pytest.param({"a": 1}, {}, {}, {}, id="left the manifest, gone already"),
        pytest.param({}, {}, {"a": 1}, {}, id="set by somebody else"),
        pytest.param(
            {"m": {"a": 1, "b": 2}},
            {"m": {"a": 1}},
            {"m": {"a": 1, "b": 2, "c": 3}},
            {"m": {"b": None}},
            id="inside an object",
        ),
        pytest.param(
            {}, {"l": [{"n": 1}]}, {"l": [{"n": 1, "default": True}]}, {}, id="defaults in a list"
        ),
        pytest.param({}, {"l": [1, 2]}, {"l": [1]}, {"l": [1, 2]}, id="a longer list, sent whole"),
        pytest.param({}, {"a": {"b": 1}}, {"a": 5}, {"a": {"b": 1}}, id="another type"),
    ],
)
def test_the_three_way_patch_of_apply(original: Any, modified: Any, live: Any, patch: Any) -> None:
    assert three_way_patch(original, modified, live) == patch


VALUES = st.recursive(
    st.integers(0, 3) | st.sampled_from(["x", "y"]) | st.booleans(),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3)
    ),
    max_leaves=6,
)
OBJECTS = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)


def merged(live: Any, patch: Any) -> Any:
    """RFC 7386, in a few lines."""
    if not isinstance(patch, dict):
        return patch
    result = dict(live) if isinstance(live, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result


@given(OBJECTS, OBJECTS, OBJECTS)
def test_after_the_patch_nothing_is_left_to_do(original: Any, modified: Any, live: Any) -> None:
    patch = three_way_patch(original, modified, live)
    assert three_way_patch(modified, modified, merged(live, patch)) == {}


@given(OBJECTS, OBJECTS)
def test_fields_that_were_never_applied_stay(modified: Any, live: Any) -> None:
    after = merged(live, three_way_patch({}, modified, live))
    assert {k: v for k, v in live.items() if k not in modified}.items() <= after.items()


def test_the_annotation_remembers_the_manifest_and_not_itself() -> None:
    obj = {"kind": "Pod", "metadata": {"name": "a", "annotations": {"n": "1"}}}
    before = copy.deepcopy(obj)
    marked = with_last_applied(obj)
    assert obj == before
    assert last_applied(marked) == obj
    assert with_last_applied(marked) == marked
    assert marked["metadata"]["annotations"][LAST_APPLIED] == (
        '{"kind":"Pod","metadata":{"annotations":{"n":"1"},"name":"a"}}\n'
    )
    assert last_applied({"metadata": {"annotations": {LAST_APPLIED: "torn"}}}) == {}
