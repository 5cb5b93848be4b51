"""Scope: the rules of conditions in a status; the kinds that have them."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler.tests.kinds.builders import created, update_errors

GOOD = {
    "type": "Ready",
    "status": "Unknown",
    "reason": "a,b:C_1",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


def _stored(plural: str) -> Any:
    spec: dict[str, Any] = {"minAvailable": 1}
    if plural == "podgroups":
        spec = {"schedulingPolicy": {"gang": {"minCount": 2}}}
    if plural == "devicetaintrules":
        spec = {"taint": {"key": "a", "effect": "NoExecute"}}
    return created(plural, {"metadata": {"name": "o"}, "spec": spec})


def _errors(plural: str, *conditions: dict[str, Any]) -> list[str]:
    stored = _stored(plural)
    new = stored | {"status": {**stored.get("status", {}), "conditions": list(conditions)}}
    return update_errors(plural, new, stored, subresource="status")


KINDS = ("podgroups", "poddisruptionbudgets", "devicetaintrules")


@pytest.mark.parametrize("plural", KINDS)
def test_good_conditions_are_accepted(plural: str) -> None:
    assert _errors(plural, GOOD, GOOD | {"type": "example.com/Other"}) == []


@pytest.mark.parametrize("plural", KINDS)
def test_odd_conditions_get_the_errors_of_kube_apiserver(plural: str) -> None:
    empty = {"type": "Other", "status": "", "observedGeneration": -1, "message": "m" * 32_769}
    where = "status.conditions"
    assert _errors(plural, GOOD, GOOD, empty) == [
        f'{where}[1].type: Duplicate value: "Ready"',
        f'{where}[2].status: Unsupported value: "": supported values: "False", "True", "Unknown"',
        f"{where}[2].observedGeneration: Invalid value: -1: must be greater than or equal to zero",
        f"{where}[2].lastTransitionTime: Required value: must be set",
        f"{where}[2].reason: Required value: must be set",
        f"{where}[2].message: Too long: may not be more than 32768 bytes",
    ]
    assert _errors(plural, GOOD | {"reason": "r" * 1025}) == [
        f"{where}[0].reason: Too long: may not be more than 1024 bytes"
    ]


def test_a_taint_rule_has_at_most_eight_conditions() -> None:
    many = [GOOD | {"type": f"t{n}"} for n in range(9)]
    assert _errors("devicetaintrules", *many) == [
        "status.conditions: Too many: 9: must have at most 8 items"
    ]
    assert _errors("podgroups", *many) == []


def test_the_status_of_a_claim_of_a_group_names_a_claim_of_its_spec() -> None:
    stored = _stored("podgroups")
    new = stored | {"status": {"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "x"}]}}
    assert update_errors("podgroups", new, stored, subresource="status") == [
        'status.resourceClaimStatuses[0].name: Invalid value: "c": must match the name of an entry '
        "in `spec.resourceClaims`"
    ]
