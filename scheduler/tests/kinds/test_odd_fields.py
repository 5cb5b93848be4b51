"""Scope: odd objects of many kinds, and the paths at which kube-apiserver v1.36 refuses them.

``odd_fields.yaml`` has the objects. Each rule is in the source of kube-apiserver, pkg/apis; these
objects break the rules of fields that scheduling does not read.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from scheduler.tests.kinds.builders import KINDS, created, named, pod, update_errors

ODD: dict[str, list[dict[str, Any]]] = yaml.safe_load(
    Path(__file__).with_name("odd_fields.yaml").read_text()
)


@pytest.mark.parametrize(
    ("plural", "fields", "paths"),
    [
        pytest.param(plural, case["fields"], case["at"], id=f"{plural}: {case['fields']}"[:120])
        for plural, cases in ODD.items()
        for case in cases
    ],
)
def test_odd_objects_are_refused_where_kube_apiserver_refuses_them(plural, fields, paths):
    obj = created(plural, named(plural, **yaml.safe_load(fields)))
    errors = KINDS[plural].validate(obj, None, subresource=None)
    assert [error.field for error in errors] == paths


def test_a_signal_to_stop_is_dropped_as_without_its_gate():
    lifecycle = {"stopSignal": "SIGUSR1", "preStop": {"sleep": {"seconds": 1}}}
    obj = pod(containers=[{"name": "a", "image": "x", "lifecycle": lifecycle}])
    assert created("pods", obj)["spec"]["containers"][0]["lifecycle"] == {
        "preStop": {"sleep": {"seconds": 1}}
    }


def test_a_workload_keeps_its_controller():
    template = {"name": "a", "schedulingPolicy": {"basic": {}}}
    old, new = (
        named(
            "workloads",
            spec={"podGroupTemplates": [template], "controllerRef": {"kind": "Job", "name": name}},
        )
        for name in ("a", "b")
    )
    errors = update_errors("workloads", new, created("workloads", old))
    assert [error.partition(":")[0] for error in errors] == ["spec.controllerRef"]


CLAIM = {"name": "a", "resourceClaimName": "x"}


@pytest.mark.parametrize(
    ("plural", "spec", "status", "path"),
    [
        pytest.param(
            "podgroups",
            {"schedulingPolicy": {"basic": {}}, "resourceClaims": [CLAIM]},
            {"resourceClaimStatuses": [{"name": "a"}, {"name": "a"}]},
            "status.resourceClaimStatuses[1].name",
            id="two claims of one name",
        ),
        pytest.param(
            "podgroups",
            {"schedulingPolicy": {"basic": {}}, "resourceClaims": [CLAIM]},
            {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": "B c"}]},
            "status.resourceClaimStatuses[0].resourceClaimName",
            id="a claim whose name is none",
        ),
        pytest.param(
            "poddisruptionbudgets",
            {"minAvailable": 1},
            {"disruptionsAllowed": -1},
            "status.disruptionsAllowed",
            id="fewer disruptions than none",
        ),
    ],
)
def test_odd_statuses_are_refused(plural, spec, status, path):
    old = created(plural, named(plural, spec=spec))
    new = {**old, "status": {**old.get("status", {}), **status}}
    errors = update_errors(plural, new, old, subresource="status")
    assert [error.partition(":")[0] for error in errors] == [path]
