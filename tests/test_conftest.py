"""What tests/conftest.py promises each test."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import PROPERTY_SECONDS_MAX


@given(st.booleans())
def test_a_property(drawn):
    assert drawn in (True, False)


@pytest.mark.timeout(30)
@given(st.booleans())
def test_a_property_with_a_limit_of_its_own(drawn):
    assert drawn in (True, False)


def test_a_busy_machine_does_not_run_out_a_property(request):
    expected = {
        "test_a_property": [(PROPERTY_SECONDS_MAX,)],
        "test_a_property_with_a_limit_of_its_own": [(30,)],
        request.node.name: [],
    }
    # One test of this file may have been asked for by name.
    for item in request.session.items:
        if item.path == request.path:
            assert [mark.args for mark in item.iter_markers("timeout")] == expected[item.name]
