"""Scope: what kube-apiserver checks of DeviceTaintRules, and the times that it sets.

Cases are named as in kubernetes v1.37 validation_devicetaintrule_test.go and
pkg/registry/resource/devicetaintrule/strategy_test.go, where they are there.
"""

from __future__ import annotations

import copy
from typing import Any

import pytest

from moorage.base.clock import rfc3339
from moorage.kinds.kind import Obj
from scheduler.tests.kinds.builders import (
    KINDS,
    World,
    create_errors,
    created,
    named,
    update_errors,
)
from scheduler.tests.kinds.test_pod_validation import LABEL, QUALIFIED
from scheduler.tests.kinds.test_scheduling_rules import SUBDOMAIN

BAD = "!@#$%^"
SELECTOR = {"driver": "test.example.com", "pool": "foo", "device": "foo"}
TAINT = {"key": "example.com/taint", "value": "tainted", "effect": "NoSchedule"}
NOW = rfc3339(World().clock.now_ns())
THEN = "2000-01-01T00:00:00Z"
LATER = "2000-01-01T00:00:05Z"


def rule(name: str = "x", taint: dict[str, Any] = TAINT, **selector: Any) -> Obj:
    return named(
        "devicetaintrules",
        name,
        spec={"deviceSelector": {**SELECTOR, **selector}, "taint": dict(taint)},
    )


@pytest.mark.parametrize(
    ("obj", "errors"),
    [
        pytest.param(rule(), [], id="good"),
        pytest.param(rule(""), ["metadata.name: Required value"], id="missing-name"),
        pytest.param(
            rule(BAD), [f'metadata.name: Invalid value: "{BAD}": {SUBDOMAIN}'], id="bad-name"
        ),
        pytest.param(
            rule(driver=BAD),
            [f'spec.deviceSelector.driver: Invalid value: "{BAD}": {SUBDOMAIN}'],
            id="bad-driver",
        ),
        pytest.param(
            rule(pool=BAD),
            [f'spec.deviceSelector.pool: Invalid value: "{BAD}": {SUBDOMAIN}'],
            id="bad-pool",
        ),
        pytest.param(
            rule(device=BAD),
            [f'spec.deviceSelector.device: Invalid value: "{BAD}": {LABEL}'],
            id="bad-device",
        ),
        pytest.param(
            rule(taint={"key": "foo", "value": "foo", "effect": "NoExecute"}), [], id="valid-taint"
        ),
        pytest.param(
            rule(taint={"key": "foo", "value": "foo"}),
            ["spec.taint.effect: Required value"],
            id="invalid-taint",
        ),
        pytest.param(
            rule(taint={**TAINT, "effect": "PreferNoSchedule"}),
            [
                'spec.taint.effect: Unsupported value: "PreferNoSchedule": supported values: '
                '"NoExecute", "NoSchedule", "None"'
            ],
            id="an effect that only nodes have",
        ),
        pytest.param(
            named("devicetaintrules", spec={"taint": TAINT}), [], id="a rule without a selector"
        ),
        pytest.param(
            named("devicetaintrules", spec={}),
            [
                'spec.taint.key: Invalid value: "": name part must be non-empty',
                f'spec.taint.key: Invalid value: "": {QUALIFIED}',
                "spec.taint.effect: Required value",
            ],
            id="a rule without a taint",
        ),
        pytest.param(
            rule(driver="", pool="", device=""),
            [
                "spec.deviceSelector.driver: Required value",
                f'spec.deviceSelector.driver: Invalid value: "": {SUBDOMAIN}',
                "spec.deviceSelector.pool: Required value",
                f'spec.deviceSelector.device: Invalid value: "": {LABEL}',
            ],
            id="empty names",
        ),
    ],
)
def test_the_errors_of_a_rule(obj: Obj, errors: list[str]) -> None:
    found = create_errors("devicetaintrules", obj)
    assert [each.removesuffix(": name or generateName is required") for each in found] == errors


def stored(**taint: Any) -> Obj:
    obj = rule(taint={**TAINT, "timeAdded": THEN, **taint})
    return {**obj, "metadata": {**obj["metadata"], "generation": 1}}


@pytest.mark.parametrize(
    ("taint", "time", "generation"),
    [
        pytest.param({}, THEN, 1, id="no-changes-okay"),
        pytest.param({"effect": "None"}, NOW, 2, id="change-effect"),
        pytest.param({"key": "example.com/taint-other"}, THEN, 2, id="change-key"),
        pytest.param({"value": "value"}, THEN, 2, id="change-value"),
        pytest.param({"timeAdded": LATER}, LATER, 2, id="change-time-added"),
        pytest.param(
            {"effect": "None", "timeAdded": LATER}, LATER, 2, id="effect and time are changed"
        ),
        pytest.param({"timeAdded": None}, NOW, 2, id="the time is left out"),
    ],
)
def test_an_update_sets_the_time_of_another_effect(
    taint: dict[str, Any], time: str, generation: int
) -> None:
    new, kind = copy.deepcopy(stored(**taint)), KINDS["devicetaintrules"]
    new["metadata"]["generation"] = 42
    new["status"] = {"conditions": []}
    kind.default(new)
    kind.prepare_update(new, stored(), subresource=None, ctx=World())
    assert new["spec"]["taint"] == {**TAINT, **taint, "timeAdded": time}
    assert new["metadata"]["generation"] == generation
    assert "status" not in new


def test_a_new_rule_gets_its_time_and_generation_and_no_status() -> None:
    obj = {**rule(), "status": {"conditions": [{"type": "foo"}]}}
    obj["metadata"]["generation"] = 42
    made = created("devicetaintrules", obj)
    assert made["spec"]["taint"] == {**TAINT, "timeAdded": NOW}
    assert made["metadata"]["generation"] == 1
    assert "status" not in made


def test_a_write_of_the_status_changes_nothing_else() -> None:
    new, kind = copy.deepcopy(stored(effect="None")), KINDS["devicetaintrules"]
    new["metadata"]["labels"] = {"foo": "bar"}
    new["status"] = {"conditions": []}
    kind.prepare_update(new, stored(), subresource="status", ctx=World())
    assert new == {**stored(), "status": {"conditions": []}}


def test_a_stored_effect_that_is_no_longer_known_stands() -> None:
    old = stored(effect="Unknown")
    labelled = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    assert update_errors("devicetaintrules", labelled, old) == []


def test_a_taint_of_a_slice_gets_its_time() -> None:
    device = {"name": "d", "taints": [TAINT, {**TAINT, "timeAdded": THEN}]}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "d.com", "pool": pool, "allNodes": True, "devices": [device]}
    made = created("resourceslices", named("resourceslices", spec=spec))
    assert [each["timeAdded"] for each in made["spec"]["devices"][0]["taints"]] == [NOW, THEN]
