"""Which documents are so small that a merge of them needs no check of depth and size."""

from __future__ import annotations

import pytest

from moorage.api.bounds import OF_BODY
from moorage_sandbox.apiserver.wire.bodies import are_small


@pytest.mark.parametrize(
    ("documents", "small"),
    [
        pytest.param((b"{}",), True, id="an empty object"),
        pytest.param((b"[" * OF_BODY.depth_max,), True, id="as deep as allowed"),
        pytest.param((b"[" * OF_BODY.depth_max, b"{"), False, id="deeper together than allowed"),
        pytest.param((b"," * OF_BODY.values_max,), True, id="as many values as allowed"),
        pytest.param((b"," * OF_BODY.values_max, b","), False, id="more values than allowed"),
    ],
)
def test_documents_count_as_small_up_to_the_bound(documents: tuple[bytes, ...], small: bool):
    assert are_small(*documents) is small
