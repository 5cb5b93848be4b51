"""Selectors: the variable ``device``, the functions of Kubernetes, and what goes wrong."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Iterator

import pytest

from moorage.api.codec import from_dict
from moorage.api.devices import Device
from moorage.cel import runtime
from moorage.plugins.claims.devices import cel
from moorage.plugins.claims.devices.cel import SelectorFault
from moorage.plugins.claims.devices.offered import DeviceKind
from scheduler.tests.plugins.claims.devices.builders import DRIVER, device

OWN = 'device.attributes["gpu.example.com"]'
MEMORY = 'device.capacity["gpu.example.com"].memory'
HINT = "Consider using CEL optional chaining (?), has() macro, or orValue() for optional fields"

A100 = device(
    "a",
    attributes={
        "model": "a100",
        "numa": 0,
        "healthy": True,
        "version": {"version": "1.10.3"},
        "other.org/numa": 7,
    },
    capacity={"memory": "40Gi", "other.org/slots": "5"},
)


def kind(manifest=None) -> DeviceKind:
    return DeviceKind(DRIVER, from_dict(Device, manifest or A100), ())


@pytest.mark.parametrize(
    "expression",
    [
        pytest.param('device.driver == "gpu.example.com"', id="the driver"),
        pytest.param(f'{OWN}.model == "a100"', id="an attribute without a domain is the driver's"),
        pytest.param('device.attributes["other.org"].numa == 7', id="an attribute with a domain"),
        pytest.param(f'{OWN}.numa == 0 && {OWN}["numa"] < 1', id="an integer"),
        pytest.param(f"{OWN}.healthy", id="a bool attribute as the result"),
        pytest.param('device.capacity["other.org"].slots == quantity("5")', id="a capacity"),
        pytest.param("!device.allowMultipleAllocations", id="allowMultipleAllocations"),
        pytest.param(
            'size(device.attributes["nobody.org"]) == 0', id="an unknown domain is an empty map"
        ),
        pytest.param(
            '!has(device.attributes["nobody.org"].x)', id="has() on an unknown domain is false"
        ),
        pytest.param(
            '!device.attributes["a.org"].exists(k, true) && !("x" in device.capacity["b.org"])',
            id="two unknown domains",
        ),
        pytest.param(
            '!("nobody.org" in device.attributes)',
            id="an unknown domain is not in device.attributes",
        ),
        pytest.param(f'{OWN}.exists(k, k == "numa")', id="macros"),
        pytest.param(
            f'{OWN}.?nothing.orValue(3) == 3 && {OWN}[?"numa"].hasValue()', id="optionals"
        ),
        pytest.param(
            f'cel.bind(own, {OWN}, own.model.startsWith("a") && own.healthy)', id="cel.bind"
        ),
        pytest.param('"A,b".lowerAscii().split(",").join("") == "ab"', id="strings"),
        pytest.param(f'{OWN}.model.matches("^a[0-9]+$")', id="regular expressions"),
        pytest.param(f'{OWN}.model.find("[0-9]+") == "100"', id="the part that matches"),
        pytest.param(f'{OWN}.model.findAll("[0-9]").size() == 3', id="all parts that match"),
        pytest.param(f'sets.contains(["t4", "a100"], [{OWN}.model])', id="sets"),
        pytest.param('isIP("10.0.0.1") && !isCIDR("10.0.0.1")', id="addresses"),
        pytest.param(f'{OWN}.model in ["t4", "a100"]', id="lists"),
        pytest.param(f'{MEMORY}.compareTo(quantity("40Gi")) == 0', id="quantities are compared"),
        pytest.param(
            f'{MEMORY}.isGreaterThan(quantity("40G"))', id="quantities are compared by value"
        ),
        pytest.param(
            f'{MEMORY}.isLessThan(quantity("41Gi"))',
            id="quantities are compared in both directions",
        ),
        pytest.param(f'{MEMORY} == quantity("40960Mi")', id="quantities of equal value are equal"),
        pytest.param(
            f'{MEMORY}.sub(quantity("39Gi")).add(1).asInteger() == 1073741825',
            id="quantities and integers are added",
        ),
        pytest.param(
            'quantity("1").add(quantity("500m")) == quantity("1.5")', id="quantities are added"
        ),
        pytest.param('quantity("1500m").asApproximateFloat() == 1.5', id="a quantity as a number"),
        pytest.param(
            'quantity("-1").sign() == -1 && quantity("0").sign() == 0', id="the sign of a quantity"
        ),
        pytest.param('isQuantity("1Gi") && !isQuantity("1Go")', id="isQuantity"),
        pytest.param(
            'quantity("1k").isInteger() && !quantity("1m").isInteger()',
            id="isInteger and asInteger",
        ),
        pytest.param(f'{OWN}.version.isGreaterThan(semver("1.9.0"))', id="versions are compared"),
        pytest.param(
            f'{OWN}.version.compareTo(semver("1.10.3")) == 0',
            id="versions are compared by number, not as text",
        ),
        pytest.param(
            f'{OWN}.version == semver("1.10.3+build")',
            id="versions are compared without build metadata",
        ),
        pytest.param(
            f"cel.bind(v, {OWN}.version, v.major() == 1 && v.minor() == 10 && v.patch() == 3)",
            id="parts of a version",
        ),
        pytest.param('semver("v1.2", true) == semver("1.2.0")', id="versions in a loose form"),
        pytest.param(
            'isSemver("1.0.0") && !isSemver("1.0") && isSemver("1.0", true)', id="isSemver"
        ),
    ],
)
def test_selector_expressions(expression):
    assert kind().fulfils_selector(expression) is True
    assert kind().fulfils_selector(f"!({expression})") is False


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        pytest.param(
            f"{OWN}.nothing == 1", f"no such key: nothing. {HINT}", id="a missing attribute"
        ),
        pytest.param(
            'device.attributes["nobody.org"].x == 1',
            f"no such key: x. {HINT}",
            id="a missing attribute of a missing domain",
        ),
        pytest.param(f"{OWN}.model > 3", "no such overload", id="types that do not go together"),
        pytest.param(
            f'{MEMORY}.isLessThan(semver("1.0.0"))',
            "no such overload",
            id="a quantity and a version",
        ),
        pytest.param(
            f"{OWN}.version.sign() == 1", "no such overload", id="a version is no quantity"
        ),
        pytest.param(f"{MEMORY}.major() == 1", "no such overload", id="a quantity is no version"),
        pytest.param("1 / (size(device.driver) - 15) == 1", "division by zero", id="a division"),
        pytest.param(
            'quantity("much").sign() == 1',
            "quantities must match the regular expression "
            "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
            id="text that is no quantity",
        ),
        pytest.param(
            'quantity("1m").asInteger() == 1', "cannot convert value to integer", id="a fraction"
        ),
        pytest.param(
            f"{OWN}.numa",
            "CEL result of type int could not be converted to bool",
            id="a result that is not a bool",
        ),
        pytest.param(
            f"{[1] * 101}.all(x, {[1] * 101}.all(y, x == y))",
            "Iteration budget exceeded",
            id="too many steps",
        ),
    ],
)
def test_selector_errors_on_a_device(expression, fault):
    assert kind().fulfils_selector(expression) == SelectorFault("runtime", fault)


def test_a_device_larger_than_the_api_allows_is_bounded_by_its_own_size():
    large = device("a", attributes={"model": "x" * 1_000_000})
    grows = f'{OWN}.model.replace("x", "yyyyyyyyyyyyyyyy").size() > 0'
    assert kind().fulfils_selector(grows) is True
    fault = kind(large).fulfils_selector(grows)
    assert isinstance(fault, SelectorFault)
    assert fault.kind == "cost"


@pytest.mark.parametrize(
    ("expression", "fault"),
    [
        pytest.param(
            "machine.driver == ''",
            "compilation failed: ERROR: <input>:1:8: undeclared reference to 'machine.driver' "
            "(in container '')\n | machine.driver == ''\n | .......^",
            id="an unknown variable",
        ),
        pytest.param(
            "[true]",
            "must evaluate to bool or the unknown type, not list<bool>",
            id="an expression that is no bool",
        ),
    ],
)
def test_selectors_that_do_not_compile(expression, fault):
    assert kind().fulfils_selector(expression) == SelectorFault("compile", fault)


@pytest.mark.parametrize(
    ("attribute", "fault"),
    [
        pytest.param(
            {}, "attribute x: unsupported attribute value", id="an attribute of an unknown type"
        ),
        pytest.param(
            {"version": "1.0"},
            "attribute x: parse semantic version: '1.0' is no semantic version "
            "(three numbers, no leading zeros)",
            id="an attribute with an invalid version",
        ),
    ],
)
def test_a_device_with_an_unreadable_attribute_fails_every_selector(attribute, fault):
    broken = kind(device("a", attributes={"x": attribute}))
    assert broken.fulfils_selector("true") == SelectorFault("runtime", fault)


def test_each_selector_is_evaluated_once_for_a_kind(monkeypatch):
    asked = []
    real = cel.matches

    def counting(expression, variable):
        asked.append(expression)
        return real(expression, variable)

    monkeypatch.setattr("moorage.plugins.claims.devices.offered.matches", counting)
    one = kind()
    assert [
        one.fulfils_selector("true"),
        one.fulfils_selector("false"),
        one.fulfils_selector("true"),
    ] == [True, False, True]
    assert asked == ["true", "false"]


@pytest.fixture
def _no_runtime(monkeypatch) -> Iterator[None]:
    caches = (cel._compiled, cel._environment, runtime.cel_types, runtime._runtime)
    for cached in caches:
        cached.cache_clear()
    monkeypatch.setitem(sys.modules, "cel_expr_python", None)
    yield
    for cached in caches:
        cached.cache_clear()


@pytest.mark.usefixtures("_no_runtime")
def test_the_runtime_is_not_loaded_before_the_first_selector():
    assert "matches" in runpy.run_path(cel.__file__)


@pytest.mark.usefixtures("_no_runtime")
def test_a_selector_without_the_runtime_names_the_package_to_install():
    assert kind().fulfils_selector("true") == SelectorFault(
        "compile",
        "selectors need a CEL runtime, which is not installed: pip install 'moorage[dra]'",
    )
