"""The plain computation of answers, where the tests of plugins do not compare it with them."""

from __future__ import annotations

from typing import Any

import pytest

from moorage_lab.fault_sim.reference.filters import names_named
from moorage_sandbox.testing.builders import pod


def field(operator: str, *names: str) -> dict[str, Any]:
    return {"key": "metadata.name", "operator": operator, "values": list(names)}


@pytest.mark.parametrize(
    ("terms", "names"),
    [
        pytest.param([], None, id="no terms"),
        pytest.param([[field("In", "a")]], {"a"}, id="one name"),
        pytest.param([[field("In", "a")], [field("In", "b")]], {"a", "b"}, id="a term for each"),
        pytest.param([[field("In", "a")], []], None, id="a term that names none"),
        pytest.param([[field("NotIn", "a")]], None, id="a term that excludes a name"),
        pytest.param([[field("In", "a", "b"), field("In", "b")]], {"b"}, id="both of a term"),
    ],
)
def test_the_nodes_that_an_affinity_names(
    terms: list[list[dict[str, Any]]], names: set[str] | None
) -> None:
    selector = {"nodeSelectorTerms": [{"matchFields": fields} for fields in terms]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": selector} if terms else {}
    assert names_named(pod("p", affinity={"nodeAffinity": required})) == names
