"""The field names of manifests, as kubernetes v1.36 scheduler_perf reads its templates.

Templates of nodes, pods, namespaces and volumes are decoded into Go types, which take a name in
any case. Bodies of createAny and updateAny are sent as they are, under strict field validation.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.base.errors import DecodeError
from moorage_lab.bench.scheduler_perf.spelling import Spelling, spelt


def pod(**spec: Any) -> dict[str, Any]:
    """Return a pod with these fields in its spec."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"labels": {"Color": "red"}},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("given", "read"),
    [
        pytest.param(
            pod(topologySpreadConstraints=[{"maxSkew": 1, "NodeTaintsPolicy": "Honor"}]),
            pod(topologySpreadConstraints=[{"maxSkew": 1, "nodeTaintsPolicy": "Honor"}]),
            id="a field in a list",
        ),
        pytest.param(
            pod(NODENAME="a", nodeSelector={"Zone": "b"}),
            pod(nodeName="a", nodeSelector={"Zone": "b"}),
            id="a field, and the keys of a map as they are",
        ),
        pytest.param(
            {"apiVersion": "example.com/v1", "kind": "Paint", "Colour": "red"},
            {"apiVersion": "example.com/v1", "kind": "Paint", "Colour": "red"},
            id="a kind that is not built in",
        ),
    ],
)
def test_a_go_type_takes_a_field_in_any_case(given: dict[str, Any], read: dict[str, Any]) -> None:
    assert spelt(given, "any case") == read


@pytest.mark.parametrize(
    ("given", "spelling", "fault"),
    [
        pytest.param(
            pod(containers=[{"imagee": "a"}], hostName="b", colour="red"),
            "any case",
            'unknown field "spec.containers[0].imagee"; unknown field "spec.colour"',
            id="names that the kind does not have",
        ),
        pytest.param(
            pod(nodeName="a", NodeName="b"),
            "any case",
            'unknown field "spec.NodeName"',
            id="one field in two spellings",
        ),
        pytest.param(
            pod(NodeName="b"), "exact", 'unknown field "spec.NodeName"', id="another case, exactly"
        ),
        pytest.param(
            {
                "apiVersion": "resource.k8s.io/v1beta2",
                "kind": "DeviceClass",
                "spec": {"selectors": [{"cell": {}}]},
            },
            "exact",
            'unknown field "spec.selectors[0].cell"',
            id="an older version of a kind",
        ),
    ],
)
def test_other_fields_are_refused_by_name(
    given: dict[str, Any], spelling: Spelling, fault: str
) -> None:
    with pytest.raises(DecodeError) as raised:
        spelt(given, spelling)
    assert str(raised.value) == fault


def test_a_body_without_strict_validation_is_left_to_the_server() -> None:
    given = pod(NodeName="b", colour="red")
    assert spelt(given, "free") == given
