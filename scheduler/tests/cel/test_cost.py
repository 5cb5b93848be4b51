"""The highest possible cost of CEL expressions: Kubernetes' numbers, and what no bound may miss."""

from __future__ import annotations

import pytest

from moorage.base.rng import Random, Streams
from moorage.cel.bounds import Known
from moorage.cel.cost import Cost, cost_bound
from moorage.cel.selector_cost import is_too_long, selector_cost
from moorage.cel.tree import read_tree

pytest.importorskip("cel_expr_python")

from moorage.cel.runtime import Program, activation, compile_over, evaluate

NAMES = ("device", "self")
OWN = 'device.attributes["dra.example.com"]'
TEN = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10]"


def compiled(text: str, wanted: str = "bool") -> Program:
    program = compile_over(text, wanted, NAMES)
    assert isinstance(program, Program), program
    return program


def serialized(text: str) -> bytes:
    found: bytes = compiled(text).expression.serialize()
    return found


def bound(text: str, value: object = None, wanted: str = "bool") -> Cost:
    tree = read_tree(compiled(text, wanted).expression.serialize())
    return cost_bound(tree, {"self": Known([value])})


def doubled(start: str, step: str, times: int, result: str) -> str:
    """Return an expression with a chain of names, each for a value made of the one before."""
    binds = [f"cel.bind(a0, {start}, "]
    binds += [f"cel.bind(a{i}, {step.replace('$', f'a{i - 1}')}, " for i in range(1, times)]
    return "".join(binds) + result.replace("$", f"a{times - 1}") + ")" * times


@pytest.mark.parametrize(
    ("selector", "cost"),
    [
        pytest.param('device.driver == ""', 3, id="an empty text"),
        pytest.param('device.driver == "dra.example.com"', 4, id="a text"),
        pytest.param(f"{OWN}.name", 4, id="an attribute"),
        pytest.param(f'cel.bind(dra, {OWN}, dra["name"])', 15, id="a name for a domain"),
        pytest.param(f"{OWN}.name > 0", 5, id="an attribute compared with a number"),
        pytest.param(f'{OWN}.name == "fish"', 5, id="an attribute compared with a text"),
        pytest.param(
            'device.attributes.exists_one(x, x == "dra.example.com")', 164, id="a loop of domains"
        ),
        pytest.param(f'{OWN}.exists_one(x, x == "services")', 133, id="a loop of names"),
    ],
)
def test_costs_of_kubernetes(selector, cost):
    """The costs of dynamic-resource-allocation/cel/compile_test.go; an empty text is one more."""
    assert selector_cost(serialized(selector)) == cost


REFUSED = [
    pytest.param(
        f'"{"a" * 1500}".replace("", "{"a" * 500}").replace("", "{"b" * 50}").size() > 0',
        id="a replacement in a replacement",
    ),
    pytest.param(
        f'"{"a" * 2000}".replace("a", "{"b" * 2000}").replace("b", "{"c" * 300}").size() > 0',
        id="each letter replaced by many, twice",
    ),
    pytest.param(doubled("'xx'", "$ + $", 26, "$ == ''"), id="a text doubled 25 times"),
    pytest.param(doubled("[1]", "$ + $", 26, "$.size() > 0"), id="a list doubled 25 times"),
    pytest.param(doubled("['x']", "[$, $]", 26, "$ == $"), id="lists of lists that share"),
    pytest.param(doubled("{'x': 1}", "{'a': $, 'b': $}", 25, "$ == $"), id="maps of maps"),
    pytest.param(
        doubled("'xxxx'", "$.split('').join($)", 8, "$ == ''"), id="a text joined with itself"
    ),
    pytest.param(
        doubled("['xxxx']", "[$.join('yy') + $.join('zz')] + $", 26, "$.size() > 0"),
        id="a list that grows by its texts",
    ),
    pytest.param(
        doubled("'x'", "'%s%s%s%s'.format([$, $, $, $])", 14, "$ == ''"), id="a formatted text"
    ),
    pytest.param(doubled("'\"'", "strings.quote($)", 27, "$ == ''"), id="a text quoted 26 times"),
    pytest.param(
        doubled("'" + "x" * 1000 + "'", "$ + $ + $", 6, "$.contains($ + 'y')"),
        id="a long text searched for a long text",
    ),
    pytest.param(f"{TEN}.all(x, " * 7 + 'int("1") < 100' + ")" * 7, id="seven loops in each other"),
    pytest.param(
        f"{OWN}.all(a, {OWN}.all(b, {OWN}.all(c, {OWN}.all(d, a + b + c + d != ''))))",
        id="four loops over a device",
    ),
    pytest.param(
        f"{OWN}.all(k, !k.matches('\\\\pL{{100}}'))", id="large regular expressions in a loop"
    ),
    pytest.param(
        f"{OWN}.map(k, {OWN}.map(j, {OWN}.map(i, i + '{'x' * 3000}'))).size() > 0",
        id="long texts in lists of lists",
    ),
    pytest.param(
        doubled("optional.of('xx')", "$.optMap(v, v + v)", 2, "$.hasValue()")
        + " && "
        + doubled("optional.of('xx').value()", "$ + $", 25, "$ == ''"),
        id="a text in an optional value",
    ),
    pytest.param(
        doubled("'xx'", "true ? $ + $ : ''", 26, "$ == ''"), id="a text doubled in a choice"
    ),
    pytest.param(doubled("'xx'", "[$ + $, 'x'][0]", 26, "$ == ''"), id="a text doubled in a list"),
    pytest.param(doubled("'xx'", "{'a': $ + $}.a", 26, "$ == ''"), id="a text doubled in a map"),
    pytest.param(doubled("b'xx'", "$ + $", 26, "$ == b''"), id="bytes doubled 25 times"),
    pytest.param(doubled("'xx'", "dyn($) + dyn($)", 26, "$ == ''"), id="a text of no type doubled"),
    pytest.param(
        doubled("['xx']", "$.map(x, x + x)", 26, "$.size() == 0"), id="texts doubled by map"
    ),
    pytest.param(
        doubled("['xx']", "$.filter(x, true) + $", 26, "$.size() == 0"), id="a list and its filter"
    ),
]


@pytest.mark.parametrize("selector", REFUSED)
def test_selectors_over_the_limit(selector):
    assert selector_cost(serialized(selector)) > 1_000_000


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        pytest.param("optional.of(1)" + ".optMap(a, a)" * 9 + " == 1", True, id="nine macros"),
        pytest.param("optional.of(1)" + ".optMap(a, a)" * 8 + " == 1", False, id="eight macros"),
        pytest.param("'" + "a" * 10_239 + "'", True, id="10 KiB and a byte"),
        pytest.param("'" + "a" * 10_238 + "'", False, id="10 KiB"),
        pytest.param("'" + "ä" * 5_119 + "ä'", True, id="10 KiB and two bytes in UTF-8"),
    ],
)
def test_expressions_that_are_not_compiled(expression, expected):
    assert is_too_long(expression) is expected


@pytest.mark.parametrize(
    ("rule", "value", "most"),
    [
        pytest.param(
            "self.containers.all(c, c.image.startsWith('example.com/'))",
            {"containers": [{"image": "example.com/a" * 4}] * 20, "other": ["x" * 1000] * 900},
            400,
            id="only the list that a loop goes over counts",
        ),
        pytest.param(
            "self.a.all(k, k in self.b)",
            {"a": {f"k{i}": 1 for i in range(500)}, "b": {f"k{i}": 1 for i in range(500)}},
            5_000,
            id="a key of a map is found in no time",
        ),
        pytest.param(
            "self.t.matches(self.p)",
            {"t": "x" * 100, "p": "^[a-z]+$"},
            40,
            id="a regular expression that is a value",
        ),
    ],
)
def test_cost_of_known_values(rule, value, most):
    assert bound(rule, value).units <= most


_LEAVES = ("'a'", "'bcd'", "self", "'ä'", "''", "'%s'")
_STEPS = (
    "({0} + {1})",
    "{0}.replace({1}, {2})",
    "{0}.split({1}).join({2})",
    "[{0}, {1}].join({2})",
    "({0} == {1} ? {1} : {2})",
    "[{0}, {1}].map(x, x + {2})[0]",
    "{0}.lowerAscii()",
    "strings.quote({0})",
    "'%s%s'.format([{0}, {1}])",
    "cel.bind(v, {0}, v + v)",
    "{{'k': {0}}}.map(k, {1} + k).join({2})",
    "optional.of({0}).optMap(o, o + {1}).orValue({2})",
    "string(bytes({0}))",
    "[{0}, {1}].filter(x, x != {2}).join()",
)


def _expression(draw: Random, depth: int) -> str:
    if not depth:
        return draw.choice(_LEAVES)
    return draw.choice(_STEPS).format(*(_expression(draw, depth - 1) for _ in range(3)))


@pytest.mark.parametrize("seed", range(150))
def test_no_result_of_a_random_expression_is_larger_than_its_bound(seed):
    draw = Streams(seed).stream("expressions")
    text = _expression(draw, 3)
    if len(text) > 2000:
        pytest.skip("longer than a rule")
    program = compiled(text, "string")
    found = evaluate(program, activation({"self": "xyz"}, NAMES))
    cost = bound(text, "xyz", "string")
    length = len(found.encode()) if isinstance(found, str) else 0
    assert length <= cost.result.text, text
    assert length <= 10 * cost.units, text
