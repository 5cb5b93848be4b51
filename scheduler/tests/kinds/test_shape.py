"""Scope: the quick answer about an object's shape never contradicts the slow one."""

from __future__ import annotations

import copy

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moorage.api import resources
from moorage.kinds.schema.shape import builtin_shape, fits
from scheduler.tests.kinds.test_any_object import objects_of_any_kind

TIME = "2026-01-01T00:00:00Z"


def pod(**spec: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec}


def container(**fields: object) -> dict[str, object]:
    return pod(containers=[{"name": "c", **fields}])


def created(when: object) -> dict[str, object]:
    return {"metadata": {"name": "a", "creationTimestamp": when}}


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(container(image="nginx"), True, id="a plain pod"),
        pytest.param({}, True, id="nothing"),
        pytest.param(
            container(resources={"requests": {"cpu": 1, "memory": "1.5Gi", "example.com/x": "3"}}),
            True,
            id="quantities as people write them",
        ),
        pytest.param(
            container(resources={"limits": {"cpu": "1e3"}}), False, id="a rare but good quantity"
        ),
        pytest.param(
            container(resources={"limits": {"cpu": "1Gi\n"}}), False, id="a line end in a quantity"
        ),
        pytest.param(container(resources={"limits": {"cpu": True}}), False, id="true as quantity"),
        pytest.param(container(imagee="x"), False, id="a field nobody knows"),
        pytest.param(container(image=None), False, id="a null"),
        pytest.param(pod(containers=[None]), False, id="a null in a list"),
        pytest.param(pod(nodeSelector={"a": None}), False, id="a null in a map"),
        pytest.param(pod(nodeSelector={"a": 1}), False, id="a number for a string"),
        pytest.param(pod(hostNetwork=1), False, id="a number for a boolean"),
        pytest.param(pod(priority=True), False, id="a boolean for a number"),
        pytest.param(pod(priority=1.0), False, id="a fraction for a whole number"),
        pytest.param(pod(priority=2**31), False, id="one more than int32 holds"),
        pytest.param(pod(priority=2**31 - 1), True, id="the most int32 holds"),
        pytest.param(pod(terminationGracePeriodSeconds=2**63), False, id="more than int64 holds"),
        pytest.param(created(TIME), True, id="a time"),
        pytest.param(created("2026-01-01T00:00:00.000001Z"), False, id="microseconds"),
        pytest.param(created("2026-01-01T00:00:00+00:00"), False, id="another way to write UTC"),
        pytest.param(created("2026-02-28T00:00:00Z"), True, id="the last of February"),
        pytest.param(created("2026-02-30T00:00:00Z"), False, id="a day that is not"),
        pytest.param(created("2028-02-29T00:00:00Z"), False, id="a leap day, looked at closely"),
        pytest.param(created("2026-04-31T00:00:00Z"), False, id="the 31st of April"),
        pytest.param(created("2026-12-31T23:59:59Z"), True, id="the last second of a year"),
        pytest.param(created("2026-01-01T24:00:00Z"), False, id="an hour that is not"),
        pytest.param(created("2026-01-01T00:00:00"), False, id="a time without a zone"),
        pytest.param([], False, id="a list"),
    ],
)
def test_the_quick_check_accepts_only_objects_of_the_right_shape(obj, expected):
    assert fits(resources.PODS, obj) is expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param("", True, id="empty"),
        pytest.param("YQ==", True, id="padded twice"),
        pytest.param("YWE=", True, id="padded once"),
        pytest.param("YWFh", True, id="not padded"),
        pytest.param("YQ", False, id="padding left out"),
        pytest.param("a b=", False, id="a blank"),
    ],
)
def test_the_quick_check_accepts_only_valid_base64(data, expected):
    assert fits(resources.SECRETS, {"data": {"a": data}}) is expected
    if expected:
        assert builtin_shape(resources.SECRETS).type_errors({"data": {"a": data}}) == []


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        pytest.param({"a": None}, True, id="a null inside"),
        pytest.param([1.5, "x", True], True, id="no object"),
        pytest.param(None, False, id="null, which is dropped"),
    ],
)
def test_the_quick_check_accepts_free_json_that_is_not_null(parameters, expected):
    config = {"opaque": {"driver": "d.example.com", "parameters": parameters}}
    assert fits(resources.DEVICE_CLASSES, {"spec": {"config": [config]}}) is expected


ODD: st.SearchStrategy[object] = st.sampled_from(
    [None, True, 0, -1, 2**40, 1.5, "", "x", "1Gi", TIME, "2026-13-01T00:00:00Z", [], [None], {}]
)


def _replaced(value: object, draw: st.DrawFn) -> object:
    """Put something odd into a random place of a tree."""
    if isinstance(value, dict) and value and draw(st.integers(0, 3)):
        key = draw(st.sampled_from(sorted(value)))
        return value | {key: _replaced(value[key], draw)}
    if isinstance(value, list) and value and draw(st.integers(0, 3)):
        return [_replaced(value[0], draw), *value[1:]]
    return draw(ODD)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=objects_of_any_kind(), data=st.data(), spoil=st.booleans())
def test_the_quick_check_accepts_only_what_the_full_check_accepts(drawn, data, spoil):
    kind, sent, _ = drawn
    if spoil:
        sent = sent | {"spec": data.draw(st.composite(lambda draw: _replaced(sent, draw))())}
    if not fits(kind.resource, sent):
        return
    assert kind.shape.type_errors(sent) == []
    assert kind.shape.unknown_fields(sent) == []
    before = copy.deepcopy(sent)
    kind.shape.prune(sent)
    assert sent == before
