"""The rules that Kubernetes' documentation of custom resources gives as examples.

Rows are those of the tables under "Validation rules" (kubernetes.io, custom resource definitions),
each with a value that keeps the rule and one that breaks it. Rules about dates and durations are
missing: `test_compiling` has the warning about them. What else rules can do is in the
other files of this directory.
"""

from __future__ import annotations

from typing import Any

import pytest

from sandbox.tests.rules.builders import (
    COUNT,
    TEXT,
    TEXTS,
    broken,
    listed,
    obj,
    with_rules,
)

INT_OR_STRING = {
    "x-kubernetes-int-or-string": True,
    "anyOf": [{"type": "integer"}, {"type": "string"}],
}
TEXT_MAP = {"type": "object", "additionalProperties": TEXT}
COUNTS = {"type": "object", "additionalProperties": COUNT}
REPLICAS = {"minReplicas": COUNT, "replicas": COUNT, "maxReplicas": COUNT}
WIDGETS = listed("map", obj(name=TEXT, key=TEXT, foo=COUNT))
ENVARS = listed("map", obj(name=TEXT, value=TEXT))


@pytest.mark.parametrize(
    ("properties", "rule", "good", "bad"),
    [
        pytest.param(
            REPLICAS,
            "self.minReplicas <= self.replicas && self.replicas <= self.maxReplicas",
            {"minReplicas": 0, "replicas": 5, "maxReplicas": 10},
            {"minReplicas": 0, "replicas": 20, "maxReplicas": 10},
            id="three counts are in order",
        ),
        pytest.param(
            {"stateCounts": COUNTS},
            "'Available' in self.stateCounts",
            {"stateCounts": {"Available": 1}},
            {"stateCounts": {"Gone": 1}},
            id="a map has an entry",
        ),
        pytest.param(
            {"list1": TEXTS, "list2": TEXTS},
            "(size(self.list1) == 0) != (size(self.list2) == 0)",
            {"list1": [], "list2": ["a"]},
            {"list1": ["a"], "list2": ["a"]},
            id="one of two lists is empty but not both",
        ),
        pytest.param(
            {"map1": TEXT_MAP},
            "!('MY_KEY' in self.map1) || self.map1['MY_KEY'].matches('^[a-zA-Z]*$')",
            {"map1": {"MY_KEY": "abc"}},
            {"map1": {"MY_KEY": "a1"}},
            id="one entry of a map matches if it is there",
        ),
        pytest.param(
            {"envars": ENVARS},
            "self.envars.filter(e, e.name == 'MY_ENV').all(e, e.value.matches('^[a-zA-Z]*$'))",
            {"envars": [{"name": "MY_ENV", "value": "abc"}, {"name": "B", "value": "1"}]},
            {"envars": [{"name": "MY_ENV", "value": "1"}]},
            id="one item of a list by its key matches",
        ),
        pytest.param(
            {"health": TEXT},
            "self.health.startsWith('ok')",
            {"health": "ok, mostly"},
            {"health": "not ok"},
            id="a text has a prefix",
        ),
        pytest.param(
            {"widgets": WIDGETS},
            "self.widgets.exists(w, w.key == 'x' && w.foo < 10)",
            {"widgets": [{"name": "a", "key": "x", "foo": 9}]},
            {"widgets": [{"name": "a", "key": "x", "foo": 10}]},
            id="an item with two properties exists",
        ),
        pytest.param(
            {"share": INT_OR_STRING},
            "type(self.share) == string ? self.share == '100%' : self.share == 1000",
            {"share": 1000},
            {"share": "99%"},
            id="an integer or a string is asked which it is",
        ),
        pytest.param(
            {"set1": listed("set", TEXT), "set2": listed("set", TEXT)},
            "self.set1.all(e, !(e in self.set2))",
            {"set1": ["a"], "set2": ["b"]},
            {"set1": ["a", "b"], "set2": ["b"]},
            id="two sets have nothing in common",
        ),
        pytest.param(
            {"names": listed("set", TEXT), "details": TEXT_MAP},
            "size(self.names) == size(self.details) && self.names.all(n, n in self.details)",
            {"names": ["a", "b"], "details": {"b": "", "a": ""}},
            {"names": ["a", "b"], "details": {"b": "", "c": ""}},
            id="a map has the items of a set as keys",
        ),
        pytest.param(
            {"details": TEXT_MAP},
            "self.details.all(key, key.matches('^[a-zA-Z]*$'))",
            {"details": {"a": ""}},
            {"details": {"a1": ""}},
            id="all keys of a map match",
        ),
        pytest.param(
            {"clusters": listed("map", obj(name=TEXT, spec=obj(zone=TEXT)))},
            "self.clusters.exists_one(c, c.name == 'a' && has(c.spec) && c.spec.zone == 'z')",
            {"clusters": [{"name": "a", "spec": {"zone": "z"}}]},
            {"clusters": [{"name": "a"}]},
            id="exactly one item fits",
        ),
        pytest.param(
            {"listeners": listed("map", obj(name=TEXT, port=COUNT, host=TEXT))},
            "self.listeners.all(a, self.listeners.exists_one(b, a.port == b.port && "
            "(has(a.host) && has(b.host) ? a.host == b.host : !has(a.host) && !has(b.host))))",
            {"listeners": [{"name": "a", "port": 1}, {"name": "b", "port": 1, "host": "h"}]},
            {"listeners": [{"name": "a", "port": 1}, {"name": "b", "port": 1}]},
            id="two properties are unique among the items",
        ),
        pytest.param(
            {"password": TEXT, "token": TEXT},
            "[has(self.password), has(self.token)].filter(x, x).size() == 1",
            {"token": "t"},
            {},
            id="one of several properties is set, counted",
        ),
        pytest.param(
            {"value": TEXT},
            "!self.value.matches('(?i)^[0-9.]+$') || isIP(self.value)",
            {"value": "10.0.0.1"},
            {"value": "10.0.0.256"},
            id="a text is an address or a name",
        ),
        pytest.param(
            {"namespace": COUNT},
            "self.__namespace__ > 0",
            {"namespace": 1},
            {"namespace": 0},
            id="a property named as a keyword is escaped",
        ),
        pytest.param(
            {"x-prop": COUNT},
            "self.x__dash__prop > 0",
            {"x-prop": 1},
            {"x-prop": 0},
            id="a dash in a name is escaped",
        ),
        pytest.param(
            {"redact__d": COUNT},
            "self.redact__underscores__d > 0",
            {"redact__d": 1},
            {"redact__d": 0},
            id="two underscores in a name are escaped",
        ),
        pytest.param(
            {"a.b/c": COUNT},
            "self.a__dot__b__slash__c > 0",
            {"a.b/c": 1},
            {"a.b/c": 0},
            id="dot and slash in a name are escaped",
        ),
        pytest.param(
            {"string": TEXT},
            "self.string.startsWith('kube')",
            {"string": "kubelet"},
            {"string": "let"},
            id="the name of a type needs no escape",
        ),
    ],
)
def test_example_rules_on_objects_give_the_documented_result(
    properties: dict[str, Any], rule: str, good: dict[str, Any], bad: dict[str, Any]
):
    schema = obj(rule, **properties)
    assert broken(schema, good) == []
    assert broken(schema, bad) == [f'spec: Invalid value: "object": failed rule: {rule}']


@pytest.mark.parametrize(
    ("schema", "rule", "good", "bad"),
    [
        pytest.param(
            {"type": "object", "additionalProperties": obj(priority=COUNT)},
            "self['Widget'].priority < 10",
            {"Widget": {"priority": 9}},
            {"Widget": {"priority": 10}},
            id="a map of objects",
        ),
        pytest.param(
            {"type": "array", "items": COUNT},
            "self.all(value, value >= 0 && value < 100)",
            [0, 99],
            [0, 100],
            id="a list of integers",
        ),
        pytest.param(TEXTS, "size(self) == 1", ["a"], [], id="the length of a list"),
        pytest.param(TEXT, "self.startsWith('kube')", "kubelet", "let", id="a text"),
        pytest.param(COUNT, "self > 0", 1, 0, id="an integer"),
        pytest.param({"type": "number"}, "self > 0.5 && self < 2", 1, 2, id="a number"),
        pytest.param({"type": "boolean"}, "self", True, False, id="a boolean"),
        pytest.param(INT_OR_STRING, "self == '5%' || self == 5", 5, "6%", id="either type"),
        pytest.param(
            {"type": "string", "format": "byte"}, "self == b'abc'", "YWJj", "YWJk", id="bytes"
        ),
    ],
)
def test_example_rules_on_other_values_give_the_documented_result(
    schema: dict[str, Any], rule: str, good: Any, bad: Any
):
    kind = schema.get("type", "")
    whole = obj(x=with_rules(schema, rule))
    assert broken(whole, {"x": good}) == []
    assert broken(whole, {"x": bad}) == [f'spec.x: Invalid value: "{kind}": failed rule: {rule}']


def test_a_rule_at_the_root_sees_spec_and_status_and_the_name():
    schema = obj(
        "self.status.actual <= self.spec.maxDesired",
        "self.metadata.name.startsWith(self.spec.prefix)",
        "self.kind == 'Car' && self.apiVersion == 'example.com/v1'",
        spec=obj(maxDesired=COUNT, prefix=TEXT),
        status=obj(actual=COUNT),
    )
    car = {
        "apiVersion": "example.com/v1",
        "kind": "Car",
        "metadata": {"name": "red-1", "labels": {"a": "b"}},
        "spec": {"maxDesired": 3, "prefix": "red-"},
        "status": {"actual": 3},
    }
    assert broken(schema, car, path="") == []
    car |= {"kind": "Bus", "status": {"actual": 4}, "metadata": {"name": "blue"}}
    assert broken(schema, car, path="") == [
        '<nil>: Invalid value: "object": failed rule: self.status.actual <= self.spec.maxDesired',
        '<nil>: Invalid value: "object": failed rule: '
        "self.metadata.name.startsWith(self.spec.prefix)",
        '<nil>: Invalid value: "object": failed rule: '
        "self.kind == 'Car' && self.apiVersion == 'example.com/v1'",
    ]
