"""The first objects of a sandbox: their owners, and which profiles their pods name."""

from __future__ import annotations

from collections import Counter
from typing import Any, cast

import pytest

from moorage_sandbox.cli.up.command import _first_objects


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


@pytest.mark.parametrize(
    "served",
    [pytest.param({"default-scheduler"}, id="one"), pytest.param({"gpu", "batch"}, id="two")],
)
def test_owners_take_over_the_first_pods(served: set[str]) -> None:
    """Every pod is selected by the one owner whose template it is; owners come after the pods.

    The pod that fits nowhere has none: what makes it fit is applied to the pod itself.
    """
    objects = cast("list[dict[str, Any]]", _first_objects(frozenset(served)))
    pods = [each for each in objects if each["kind"] == "Pod"]
    pods.remove(next(each for each in pods if each["metadata"]["name"] == "giant"))
    owners = [each for each in objects if each["kind"] in ("ReplicaSet", "Job")]
    assert objects[-len(owners) :] == owners
    assert len({each["metadata"]["name"] for each in owners}) == len(owners)
    taken = 0
    for each in owners:
        wanted = each["spec"]["selector"]["matchLabels"].items()
        mine = [pod for pod in pods if wanted <= pod["metadata"]["labels"].items()]
        template = each["spec"]["template"]
        assert len(mine) == each["spec"].get("replicas", each["spec"].get("parallelism"))
        assert all(pod["spec"] == template["spec"] for pod in mine)
        assert all(pod["metadata"]["labels"] == template["metadata"]["labels"] for pod in mine)
        taken += len(mine)
    assert taken == len(pods) == 29
