"""Admission policies among the objects change and deny the pods that owners would make.

Not covered: the policies' own rules (``sandbox/tests/apiserver``).
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.base.errors import UsageError
from moorage.what_if.change import Apply, Drain, Scale
from moorage.what_if.course import try_steps
from moorage.what_if.rules.policies import not_evaluated
from moorage_sandbox.testing.builders import Manifest
from scheduler.tests.what_if.cluster import bare, inputs_of, pod_of, replica_set

_PODS = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
_LIMITS = "object.spec.containers.all(c, has(c.resources.limits))"
_DISK = "[JSONPatch{op: 'add', path: '/spec/nodeSelector', value: {'disk': 'ssd'}}]"


def _policy(kind: str, constraints: Any = None, bound: Any = None, **spec: Any) -> list[Manifest]:
    """Return a policy about the creation of pods, and its binding."""
    head = {"apiVersion": "admissionregistration.k8s.io/v1", "metadata": {"name": "p"}}
    constraints = {"resourceRules": [_PODS], **(constraints or {})}
    actions = {"validationActions": ["Deny"]} if kind.startswith("Valid") else {}
    return [
        {**head, "kind": kind, "spec": {"matchConstraints": constraints, **spec}},
        {**head, "kind": f"{kind}Binding", "spec": {"policyName": "p", **actions, **(bound or {})}},
    ]


def _denies(expression: str = _LIMITS, **more: Any) -> list[Manifest]:
    validations = [{"expression": expression, "message": "limits, please"}]
    return _policy("ValidatingAdmissionPolicy", validations=validations, **more)


def _changes(expression: str = _DISK, **more: Any) -> list[Manifest]:
    patch = {"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}
    wanted = {"reinvocationPolicy": "Never", "failurePolicy": "Fail", "mutations": [patch]}
    return _policy("MutatingAdmissionPolicy", **wanted, **more)


_NAMESPACE = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": "default", "labels": {"strict": "yes"}},
}
_STRICT = {"namespaceSelector": {"matchLabels": {"strict": "yes"}}}
_CONTROLLER = "system:serviceaccount:kube-system:replicaset-controller"
_PARAMETERS: dict[str, Any] = {
    "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
    "bound": {"paramRef": {"name": "most", "parameterNotFoundAction": "Deny"}},
}
_AS_MANY = "size(object.spec.containers) <= int(params.data.containers)"
_MOST = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "most", "namespace": "default"},
    "data": {"containers": "0"},
}


@pytest.mark.parametrize(
    ("objects", "made"),
    [
        pytest.param(_denies(), 0, id="a validation that does not hold"),
        pytest.param(_denies("true"), 2, id="a validation that holds"),
        pytest.param(_denies()[:1], 2, id="no binding"),
        pytest.param(
            _denies(bound={"validationActions": ["Warn"]}), 2, id="a binding that only warns"
        ),
        pytest.param(
            _denies(matchConditions=[{"name": "c", "expression": "false"}]),
            2,
            id="a condition that does not hold",
        ),
        pytest.param(_denies(constraints=_STRICT), 2, id="another namespace"),
        pytest.param(
            [*_denies(constraints=_STRICT), _NAMESPACE], 0, id="the namespace by its label"
        ),
        pytest.param(
            _denies(f"request.userInfo.username != '{_CONTROLLER}'"),
            0,
            id="the controller of the owner is the caller",
        ),
        pytest.param(
            [*_denies(_AS_MANY, **_PARAMETERS), _MOST],
            0,
            id="parameters that are known",
        ),
        pytest.param(_denies(**_PARAMETERS), 2, id="parameters that were not read"),
    ],
)
def test_owners_make_the_pods_that_policies_allow(objects: list[Manifest], made: int) -> None:
    inputs = inputs_of(replica_set("web", 1, cpu="1"), pod_of("web", 1, "n1", cpu="1"), *objects)
    course = try_steps(inputs, [Scale("ReplicaSet", "default", "web", 3)])
    assert (len(course.starts), len(course.newly_pending)) == (made, 2 - made)
    assert all("denied request: limits, please" in each.reason for each in course.newly_pending)


def test_a_mutating_policy_decides_where_new_pods_go() -> None:
    inputs = inputs_of(replica_set("web", 1, cpu="1"), pod_of("web", 1, "n1", cpu="1"), *_changes())
    course = try_steps(inputs, [Scale("ReplicaSet", "default", "web", 2)])
    (waiting,) = course.newly_pending
    assert "3 node(s) didn't match Pod's node affinity/selector" in waiting.reason


def test_a_pod_that_leaves_is_made_again_only_if_policies_allow_it() -> None:
    inputs = inputs_of(replica_set("web", 1, cpu="1"), pod_of("web", 1, "n1", cpu="1"), *_denies())
    course = try_steps(inputs, [Drain("n1")])
    assert (len(course.moves), [each.was for each in course.newly_pending]) == (
        0,
        ["default/web-1 on n1"],
    )


def test_a_manifest_that_a_policy_denies_is_refused() -> None:
    with pytest.raises(UsageError, match=r"Pod alone would be refused: .*limits, please"):
        try_steps(inputs_of(*_denies()), [Apply(bare("alone"))])


@pytest.mark.parametrize(
    ("objects", "sentences"),
    [
        pytest.param(_denies(), [], id="a policy that is looked at"),
        pytest.param(
            _denies(**_PARAMETERS),
            [
                "ValidatingAdmissionPolicy p is not looked at: "
                "objects of the kind ConfigMap were not read"
            ],
            id="unknown parameters",
        ),
    ],
)
def test_policies_that_are_not_looked_at_are_named(
    objects: list[Manifest], sentences: list[str]
) -> None:
    assert not_evaluated(inputs_of(*objects).objects) == sentences


def test_without_cel_every_bound_policy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("moorage.what_if.rules.policies.is_installed", lambda: False)
    inputs = inputs_of(replica_set("web", 1, cpu="1"), *_denies())
    assert not_evaluated(inputs.objects) == [
        "ValidatingAdmissionPolicy p is not looked at: "
        "CEL is not installed; pip install 'moorage[dra]' has it"
    ]
    course = try_steps(inputs, [Scale("ReplicaSet", "default", "web", 3)])
    assert course.newly_pending == ()
