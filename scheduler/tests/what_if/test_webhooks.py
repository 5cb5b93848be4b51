"""Webhooks are not called by what-if; those about what a change creates are named."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.what_if.rules.webhooks import not_called
from moorage_sandbox.testing.builders import Manifest
from scheduler.tests.what_if.cluster import inputs_of


def _configuration(kind: str, name: str, **rule: Any) -> Manifest:
    whole = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], **rule}
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": kind,
        "metadata": {"name": name},
        "webhooks": [{"name": "w.example.com", "rules": [whole]}],
    }


def _named(kind: str, name: str) -> str:
    return f"{kind} {name} is not looked at: webhooks are not called"


@pytest.mark.parametrize(
    ("rule", "named"),
    [
        pytest.param({"resources": ["pods"]}, True, id="new pods"),
        pytest.param({"resources": ["*"], "operations": ["*"]}, True, id="everything"),
        pytest.param({"resources": ["pods/eviction"]}, True, id="evictions"),
        pytest.param({"resources": ["pods/status"]}, False, id="another subresource"),
        pytest.param({"resources": ["pods"], "operations": ["DELETE"]}, False, id="deletions"),
        pytest.param({"resources": ["deployments"], "apiGroups": ["apps"]}, True, id="owners"),
        pytest.param({"resources": ["secrets"]}, False, id="objects that no change creates"),
    ],
)
@pytest.mark.parametrize("kind", ["MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"])
def test_webhooks_about_what_changes_create_are_named(
    kind: str, rule: dict[str, Any], named: bool
) -> None:
    objects = inputs_of(_configuration(kind, "sidecar", **rule)).objects
    assert not_called(objects) == ([_named(kind, "sidecar")] if named else [])


def test_each_configuration_is_named_once_by_kind_and_name() -> None:
    both = _configuration("ValidatingWebhookConfiguration", "b", resources=["*"])
    both["webhooks"] *= 2
    other = _configuration("ValidatingWebhookConfiguration", "a", resources=["pods"])
    change = _configuration("MutatingWebhookConfiguration", "c", resources=["pods"])
    assert not_called(inputs_of(both, other, change).objects) == [
        _named("MutatingWebhookConfiguration", "c"),
        _named("ValidatingWebhookConfiguration", "a"),
        _named("ValidatingWebhookConfiguration", "b"),
    ]
