"""The first objects of a sandbox: their owner, and which profiles their pods name."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import pytest

from moorage.cli.up.command import _first_objects


@pytest.mark.parametrize(
    ("served", "counts"),
    [
        pytest.param({"default-scheduler"}, {"": 30}, id="the default profile takes them all"),
        pytest.param(
            {"default-scheduler", "other"}, {"": 30}, id="the default profile beside another"
        ),
        pytest.param({"gpu", "batch"}, {"batch": 15, "gpu": 15}, id="other profiles, in turn"),
    ],
)
def test_the_first_pods_name_profiles_that_there_are(
    served: set[str], counts: dict[str, int]
) -> None:
    pods = [each for each in _first_objects(frozenset(served)) if each["kind"] == "Pod"]
    specs = [cast("dict[str, Any]", each["spec"]) for each in pods]
    assert Counter(spec.get("schedulerName", "") for spec in specs) == counts


def test_the_first_pods_have_an_owner_that_is_created_before_them() -> None:
    first, *others = _first_objects(frozenset({"default-scheduler"}))
    owner = cast("dict[str, Any]", first["metadata"])["name"]
    owners = [
        cast("dict[str, Any]", each["metadata"])["ownerReferences"]
        for each in others
        if each["kind"] == "Pod"
    ]
    assert (
        owners
        == [[{"apiVersion": "v1", "kind": first["kind"], "name": owner, "controller": True}]] * 30
    )
