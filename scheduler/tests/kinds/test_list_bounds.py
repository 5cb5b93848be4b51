"""The bounds of lists: the longest list is accepted, and a longer list is one short error."""

from __future__ import annotations

import json
from typing import Any

import pytest

from sandbox.tests.apiserver.harness import PODS, Cluster

_CONDITION = {"name": "a", "expression": "true"}
_POLICIES = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
_MUTATIONS = "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies"
_HOOKS = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
_JOBS = "/apis/batch/v1/namespaces/default/jobs"
_DEVICES = "/apis/resource.k8s.io/v1"


def _nested(path: str, found: list[Any]) -> dict[str, Any]:
    """Return an object with a list at a path; brackets make a list of one."""
    value: Any = found
    for key in reversed(path.split(".")):
        value = {key[:-2]: [value]} if key.endswith("[]") else {key: value}
    return {"metadata": {"name": "a"}, **value}


@pytest.mark.parametrize(
    ("path", "field", "most", "words"),
    [
        pytest.param(
            _POLICIES, "spec.matchConditions", 64, "must have at most 64 items", id="policies"
        ),
        pytest.param(
            _POLICIES,
            "spec.auditAnnotations",
            20,
            "must not have more than 20 auditAnnotations",
            id="annotations of policies",
        ),
        pytest.param(
            _MUTATIONS, "spec.matchConditions", 64, "must have at most 64 items", id="mutations"
        ),
        pytest.param(
            _HOOKS, "webhooks[].matchConditions", 64, "must have at most 64 items", id="webhooks"
        ),
        pytest.param(
            "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
            "spec.versions[].selectableFields",
            8,
            "must have at most 8 items",
            id="selectable fields",
        ),
        pytest.param(
            PODS,
            "spec.dnsConfig.searches",
            32,
            "must not have more than 32 search paths",
            id="search paths of pods",
        ),
        pytest.param(
            "/apis/networking.k8s.io/v1/namespaces/default/networkpolicies",
            "spec.policyTypes",
            2,
            "may not specify more than two policyTypes",
            id="types of a network policy",
        ),
        pytest.param(
            "/apis/apps/v1/namespaces/default/deployments",
            "spec.template.spec.dnsConfig.nameservers",
            3,
            "must not have more than 3 nameservers",
            id="name servers of templates",
        ),
        pytest.param(
            _JOBS,
            "spec.podFailurePolicy.rules",
            20,
            "must have at most 20 items",
            id="failure policies",
        ),
        pytest.param(
            "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
            "endpoints",
            1000,
            "must have at most 1000 items",
            id="endpoints",
        ),
        pytest.param(
            f"{_DEVICES}/namespaces/default/resourceclaims",
            "spec.devices.constraints",
            32,
            "must have at most 32 items",
            id="constraints of claims",
        ),
        pytest.param(
            f"{_DEVICES}/resourceslices",
            "spec.devices",
            128,
            "must have at most 128 items",
            id="devices of slices",
        ),
    ],
)
async def test_a_list_longer_than_its_bound_is_one_error(
    path: str, field: str, most: int, words: str
):
    cluster = Cluster()
    element: Any = "a" if field.endswith(("searches", "nameservers", "policyTypes")) else {}
    for count, refused in ((most, False), (most + 1, True)):
        _, found = await cluster.call("POST", path, _nested(field, [element] * count))
        causes = found.get("details", {}).get("causes", [])
        named = [each for each in causes if each["field"] == field.replace("[]", "[0]")]
        assert [words in each["message"] for each in named if words in each["message"]] == (
            [True] if refused else []
        )


async def test_conditions_of_a_policy_beyond_the_bound_are_not_compiled(
    monkeypatch: pytest.MonkeyPatch,
):
    compiled: list[Any] = []
    for module in (
        "moorage.policies.admission_policy",
        "moorage.policies.webhooks",
    ):
        monkeypatch.setattr(f"{module}.compiled", lambda *given: compiled.append(given))
    monkeypatch.setattr("moorage.policies.admission_policy.missing", compiled.append)
    body = _nested("spec.matchConditions", [_CONDITION] * 24_000)
    status, found = await Cluster().call("POST", _POLICIES, body)
    assert (status, found["details"]["causes"]) == (
        422,
        [
            {
                "reason": "FieldValueTooMany",
                "message": "Too many: 24000: must have at most 64 items",
                "field": "spec.matchConditions",
            }
        ],
    )
    assert not compiled


async def test_the_names_of_the_bounds_are_fields_of_their_kinds():
    from moorage.kinds.facts import definition, kind_definition
    from moorage_sandbox.apiserver.served_kinds import served_kinds

    wrong = []
    bounded = [kind for kind in served_kinds() if kind.bounds.bounds]
    for kind in bounded:
        shared = {json.dumps(each.path) for each in kind.bounds.bounds}
        assert len(shared) == len(kind.bounds.bounds)
        for bound in kind.bounds.bounds:
            here: Any = kind_definition(kind.resource)
            for key in bound.path:
                field = here.fields.get(key.removesuffix("[]")) if here is not None else None
                if field is None:
                    wrong.append((kind.resource.api_version, kind.resource.kind, bound.path))
                    break
                inner = field.innermost
                here = definition(inner.name) if inner.shape == "object" else None
    # A field that only another version of the kind has.
    assert [each for each in wrong if not each[0].startswith("resource.k8s.io/")] == []
    assert len(bounded) > 20
