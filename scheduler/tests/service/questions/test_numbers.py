"""Whole numbers in the parameters of questions."""

from __future__ import annotations

import pytest

from moorage.base.errors import UsageError
from moorage.service.questions.question import whole_number


@pytest.mark.parametrize(
    ("text", "found"),
    [
        pytest.param("", 5, id="no number"),
        pytest.param("0", 0, id="the least"),
        pytest.param("500", 500, id="the most"),
        pytest.param("501", None, id="one more"),
        pytest.param("-1", None, id="a negative number"),
        pytest.param("²", None, id="a digit of Unicode"),
        pytest.param("9" * 5000, None, id="5,000 digits"),
    ],
)
def test_numbers_within_bounds_are_read(text: str, found: int | None):
    if found is not None:
        assert whole_number({"limit": text}, "limit", default=5, least=0, most=500) == found
        return
    with pytest.raises(UsageError) as refused:
        whole_number({"limit": text}, "limit", default=5, least=0, most=500)
    assert str(refused.value) == f"limit: {text[:40]!r}: write a whole number from 0 to 500"
