"""PodGroup and Workload as the server takes them: defaults, rules, table."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.resources import POD_GROUPS, WORKLOADS
from moorage.kinds.workloads.pod_groups import KINDS as SERVED

KINDS = {kind.resource: kind for kind in SERVED}
GANG = {"gang": {"minCount": 2}}


def group(**spec: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": "g", "namespace": "default"},
        "spec": {"schedulingPolicy": GANG, **spec},
    }


def faults(obj: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    kind = KINDS[POD_GROUPS]
    kind.defaults(obj)
    return [each.field for each in kind.validate(obj, old, subresource=None)]


@pytest.mark.parametrize(
    ("obj", "fields"),
    [
        pytest.param(group(), [], id="a gang"),
        pytest.param(group(schedulingPolicy={"basic": {}}), [], id="a basic group"),
        pytest.param(group(schedulingPolicy={}), ["spec.schedulingPolicy"], id="no policy"),
        pytest.param(
            group(schedulingPolicy={"basic": {}, **GANG}), ["spec.schedulingPolicy"], id="both"
        ),
        pytest.param(
            group(schedulingPolicy={"gang": {"minCount": 0}}),
            ["spec.schedulingPolicy.gang.minCount"],
            id="no members",
        ),
        pytest.param(group(disruptionMode="All"), ["spec.disruptionMode"], id="unknown mode"),
        pytest.param(
            group(schedulingConstraints={"topology": [{"key": "a"}, {"key": "b"}]}),
            ["spec.schedulingConstraints.topology"],
            id="two topologies",
        ),
        pytest.param(
            group(schedulingConstraints={"topology": [{"key": "not a key"}]}),
            ["spec.schedulingConstraints.topology[0].key"],
            id="no label key",
        ),
    ],
)
def test_the_spec_of_a_pod_group_is_checked(obj, fields):
    assert faults(obj) == fields


def test_the_spec_of_a_pod_group_is_immutable():
    old = group()
    KINDS[POD_GROUPS].defaults(old)
    assert faults(group(), old) == []
    assert faults(group(schedulingPolicy={"gang": {"minCount": 3}}), old) == ["spec"]


def test_the_table_of_pod_groups_shows_policy_and_condition():
    obj = group()
    kind = KINDS[POD_GROUPS]
    assert kind.row(obj, 0)[:3] == ["g", "gang (2)", "<none>"]
    condition = {"type": "PodGroupScheduled", "status": "False", "reason": "Unschedulable"}
    obj["status"] = {"conditions": [condition]}
    assert kind.row(obj, 0)[:3] == ["g", "gang (2)", "False (Unschedulable)"]


def test_a_workload_has_templates_of_groups():
    kind = KINDS[WORKLOADS]
    template = {"name": "workers", "schedulingPolicy": dict(GANG)}
    metadata = {"name": "w", "namespace": "default"}
    obj: dict[str, Any] = {"metadata": metadata, "spec": {"podGroupTemplates": [template]}}
    kind.defaults(obj)
    assert template["disruptionMode"] == "Pod"
    assert kind.validate(obj, None, subresource=None) == []
    assert kind.row(obj, 0)[:2] == ["w", 1]
    empty: dict[str, Any] = {"metadata": metadata, "spec": {"podGroupTemplates": []}}
    errors = kind.validate(empty, None, subresource=None)
    assert [each.field for each in errors] == ["spec.podGroupTemplates"]
