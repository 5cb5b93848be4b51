"""Scope: rules that would be asked too often are refused with the definition."""

from __future__ import annotations

from typing import Any

import pytest

from moorage_sandbox.rules.budget import elements_max
from sandbox.tests.rules.builders import COUNT, TEXT, TEXTS, obj, refused, with_rules

LOOP = "self.all(x, x != '')"
EXCEEDS = (
    "Forbidden: estimated rule cost exceeds budget by factor of {} (try simplifying the rule, or "
    "adding maxItems, maxProperties, and maxLength where arrays, maps, and strings are declared)"
)


def array(items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, **more}


@pytest.mark.parametrize(
    ("schema", "most"),
    [
        pytest.param(array(TEXT, maxItems=7), 7, id="a bound"),
        pytest.param(array(TEXT), 1_048_576, id="empty texts and commas"),
        pytest.param(array(TEXT | {"minLength": 7}), 314_572, id="longer texts"),
        pytest.param(array(COUNT), 1_572_864, id="numbers of one digit"),
        pytest.param(
            array(obj(a=TEXT) | {"required": ["a"]}), 314_572, id="objects with a required field"
        ),
        pytest.param({"type": "object", "additionalProperties": TEXT}, 449_389, id="a map"),
        pytest.param(TEXT, 1, id="no list"),
    ],
)
def test_the_number_of_elements_in_a_request_is_estimated(schema, most):
    assert elements_max(schema) == most


@pytest.mark.parametrize(
    "schema",
    [
        pytest.param(obj(l=with_rules(TEXTS, LOOP)), id="a loop over one list"),
        pytest.param(obj(l=array(with_rules(TEXT, "self != ''"))), id="a rule of each item"),
        pytest.param(
            obj(l=array(with_rules(TEXTS, LOOP), maxItems=9)), id="the outer list has a bound"
        ),
        pytest.param(
            obj(l=array(with_rules(TEXTS | {"maxItems": 9}, LOOP))), id="the inner list has a bound"
        ),
    ],
)
def test_a_rule_that_may_be_affordable_is_accepted(schema):
    assert refused(schema) == []


@pytest.mark.parametrize(
    ("schema", "place", "factor"),
    [
        pytest.param(
            obj(l=array(with_rules(TEXTS, LOOP))),
            "properties[l].items",
            "more than 100x",
            id="a loop over a list in a list",
        ),
        pytest.param(
            obj(l=array(array(with_rules(TEXT, "self != ''")))),
            "properties[l].items.items",
            "more than 100x",
            id="a rule of each item of a list in a list",
        ),
        pytest.param(
            obj(l=array(with_rules(TEXTS | {"maxItems": 100}, LOOP))),
            "properties[l].items",
            "10.5x",
            id="bounds that are too high",
        ),
    ],
)
def test_a_rule_that_costs_too_much_is_refused(schema, place, factor):
    where = f"schema.{place}.x-kubernetes-validations[0].rule"
    assert refused(schema) == [f"{where}: {EXCEEDS.format(factor)}"]
