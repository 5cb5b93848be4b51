"""Compiled selectors: labels of objects, labels and names of nodes."""

from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api import selectors as s
from moorage.api.meta import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)

KEYS = st.sampled_from(["a", "b", "example.com/c"])
VALUES = st.sampled_from(["", "x", "y", "5", "007", "12"])
LABELS = st.dictionaries(KEYS, VALUES)
EXPRESSIONS: st.SearchStrategy[tuple[str, str, list[str]]] = st.one_of(
    st.tuples(KEYS, st.sampled_from(["In", "NotIn"]), st.lists(VALUES, min_size=1, max_size=3)),
    st.tuples(KEYS, st.sampled_from(["Exists", "DoesNotExist"]), st.just([])),
)
NODE_EXPRESSIONS = st.one_of(
    EXPRESSIONS,
    st.tuples(
        KEYS, st.sampled_from(["Gt", "Lt"]), st.sampled_from(["5", "007", "12"]).map(lambda v: [v])
    ),
)


def _holds(expression: tuple[str, str, list[str]], labels: dict[str, str]) -> bool:
    """The rules of the API documentation, read aloud."""
    key, op, values = expression
    if op == "Exists":
        return key in labels
    if op == "DoesNotExist":
        return key not in labels
    if op == "NotIn":
        return not (key in labels and labels[key] in values)
    if key not in labels:
        return False
    if op == "In":
        return labels[key] in values
    if not labels[key].isdigit():
        return False
    difference = int(labels[key]) - int(values[0])
    return difference > 0 if op == "Gt" else difference < 0


@given(wanted=LABELS, expressions=st.lists(EXPRESSIONS, max_size=3), labels=LABELS)
def test_a_label_selector_is_the_and_of_its_parts(wanted, expressions, labels):
    selector = s.compile_label_selector(
        LabelSelector(
            match_labels=wanted,
            match_expressions=[
                LabelSelectorRequirement(key=k, operator=o, values=v) for k, o, v in expressions
            ],
        )
    )
    expected = wanted.items() <= labels.items() and all(_holds(e, labels) for e in expressions)
    assert selector.matches(labels) is expected
    assert selector.is_empty is (not wanted and not expressions)


@given(
    terms=st.lists(st.lists(NODE_EXPRESSIONS, max_size=2), max_size=3),
    name=st.sampled_from(["n1", "n2"]),
    labels=LABELS,
)
def test_a_node_selector_is_an_or_of_ands_without_its_empty_terms(terms, name, labels):
    selector = s.compile_node_selector(
        NodeSelector(
            node_selector_terms=[
                NodeSelectorTerm(
                    match_expressions=[
                        NodeSelectorRequirement(key=k, operator=o, values=v) for k, o, v in term
                    ]
                )
                for term in terms
            ]
        )
    )
    expected = any(term and all(_holds(e, labels) for e in term) for term in terms)
    assert selector.error is None
    assert selector.matches_node(labels, name) is expected


@given(
    st.lists(EXPRESSIONS, max_size=4).flatmap(
        lambda es: st.tuples(st.just(es), st.permutations(es))
    )
)
def test_equal_selectors_are_equal_whatever_their_order(pair):
    first, second = (
        s.compile_label_selector(
            LabelSelector(
                match_expressions=[
                    LabelSelectorRequirement(key=k, operator=o, values=[*v, *v][::step])
                    for k, o, v in expressions
                ]
            )
        )
        for expressions, step in zip(pair, (1, -1), strict=True)
    )
    assert first == second
    assert hash(first) == hash(second)


def test_a_missing_selector_matches_nothing_and_an_empty_one_everything():
    for labels in ({}, {"a": "x"}):
        assert not s.compile_label_selector(None).matches(labels)
        assert s.compile_label_selector(LabelSelector()).matches(labels)
        assert s.equality_selector(None).matches(labels)
        assert s.equality_selector({}).matches(labels)
        assert not s.compile_node_selector(None).matches_node(labels, "n")
        assert not s.compile_node_selector(NodeSelector()).matches_node(labels, "n")
    assert not s.compile_label_selector(None).is_empty


def test_a_map_of_labels_is_not_checked():
    selector = s.equality_selector({"not a key!": "x y"})
    assert selector.matches({"not a key!": "x y", "b": "z"})
    assert not selector.matches({"b": "z"})


def _label(key: str = "a", operator: str = "In", values: Iterable[str] = ("x",)) -> LabelSelector:
    return LabelSelector(
        match_expressions=[
            LabelSelectorRequirement(key=key, operator=operator, values=list(values))
        ]
    )


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        pytest.param(_label(operator="Near"), "not a valid label selector op", id="unknown"),
        pytest.param(_label(operator="Gt", values=["1"]), "not a valid label sel", id="Gt"),
        pytest.param(_label(operator="in"), "not a valid label selector operator", id="wrong case"),
        pytest.param(_label(values=[]), "values set can't be empty", id="In without values"),
        pytest.param(_label(operator="Exists"), "must be empty for exists", id="Exists with one"),
        pytest.param(_label(key="a b"), "key: Invalid value", id="a bad key"),
        pytest.param(_label(values=["x", "-"]), 'Invalid value: "-"', id="a bad value"),
        pytest.param(LabelSelector(match_labels={"a": "b c"}), "Invalid value", id="a bad label"),
    ],
)
def test_a_bad_label_selector_is_refused(selector, message):
    with pytest.raises(ValueError, match=message):
        s.compile_label_selector(selector)


Row = tuple[str, str, list[str]]


def _term(*expressions: Row, fields: Iterable[Row] = ()) -> NodeSelectorTerm:
    return NodeSelectorTerm(
        match_expressions=[
            NodeSelectorRequirement(key=k, operator=o, values=list(v)) for k, o, v in expressions
        ],
        match_fields=[
            NodeSelectorRequirement(key=k, operator=o, values=list(v)) for k, o, v in fields
        ],
    )


NAME = "metadata.name"


@pytest.mark.parametrize(
    ("term", "labels", "matches"),
    [
        pytest.param(_term(("a", "Gt", ["5"])), {"a": "6"}, True, id="more than"),
        pytest.param(_term(("a", "Gt", ["5"])), {"a": "5"}, False, id="equal is not more"),
        pytest.param(_term(("a", "Lt", ["5"])), {"a": "-7"}, True, id="a negative label"),
        pytest.param(_term(("a", "Gt", ["5"])), {"a": "+6"}, True, id="a label with a plus"),
        pytest.param(_term(("a", "Gt", ["5"])), {"a": "1_000"}, False, id="no digit separators"),
        pytest.param(_term(("a", "Gt", ["5"])), {"a": "6.5"}, False, id="no fractions"),
        pytest.param(_term(("a", "Gt", ["5"])), {}, False, id="no label"),
        pytest.param(
            _term(("a", "Gt", ["5"])), {"a": "9223372036854775808"}, False, id="beyond int64"
        ),
        pytest.param(
            _term(("a", "Gt", ["5"])), {"a": "9223372036854775807"}, True, id="the largest int64"
        ),
        pytest.param(_term(fields=[(NAME, "In", ["n1"])]), {}, True, id="this node by name"),
        pytest.param(_term(fields=[(NAME, "In", ["n2"])]), {}, False, id="another node by name"),
        pytest.param(_term(fields=[(NAME, "NotIn", ["n2"])]), {}, True, id="not another node"),
        pytest.param(
            _term(("a", "Exists", []), fields=[(NAME, "In", ["n1"])]),
            {},
            False,
            id="labels and fields must both hold",
        ),
        pytest.param(
            _term(fields=[("spec.x", "In", ["n1"])]), {}, False, id="an unknown field is empty"
        ),
        pytest.param(
            _term(fields=[("spec.x", "NotIn", ["n1"])]), {}, True, id="so it is not in a list"
        ),
    ],
)
def test_a_term_on_node_n1(term, labels, matches):
    compiled = s.compile_node_selector_term(term)
    assert compiled is not None
    assert (compiled.error, compiled.matches_node(labels, "n1")) == (None, matches)


@pytest.mark.parametrize(
    ("term", "message"),
    [
        pytest.param(_term(("a", "Near", ["x"])), "not a valid node selector", id="unknown"),
        pytest.param(_term(("a", "In", [])), "can't be empty", id="In without values"),
        pytest.param(_term(("a", "Gt", ["1", "1"])), "exactly one", id="Gt with two values"),
        pytest.param(_term(("a", "Gt", [])), "exactly one", id="Gt without value"),
        pytest.param(_term(("a", "Gt", ["x"])), "must be an integer", id="Gt with a word"),
        pytest.param(_term(("a", "Gt", ["-5"])), "Invalid value", id="-5 is not a label value"),
        pytest.param(_term(("a!", "Exists", [])), "key: Invalid", id="a bad key"),
        pytest.param(_term(fields=[(NAME, "Exists", [])]), "field selector op", id="field Exists"),
        pytest.param(_term(fields=[(NAME, "In", ["a", "b"])]), "exactly one", id="two names"),
        pytest.param(
            _term(("a", "Exists", []), fields=[(NAME, "In", [])]), "exactly one", id="no name"
        ),
    ],
)
def test_a_term_in_error_matches_nothing_and_says_why(term, message):
    good = _term(("b", "Exists", []))
    matcher = s.compile_node_selector(NodeSelector(node_selector_terms=[term, good]))
    assert message in (matcher.error or "")
    assert not matcher.terms[0].matches_node({"a": "x"}, "a")
    assert not matcher.terms[0].matches_node({"a": "x"})
    assert matcher.matches_node({"b": ""}, "n1"), "the other term still counts"


def test_without_a_name_only_labels_are_compared():
    by_name = s.compile_node_selector_term(_term(fields=[(NAME, "In", ["n1"])]))
    both = s.compile_node_selector_term(_term(("a", "Exists", []), fields=[(NAME, "In", ["n1"])]))
    assert by_name is not None
    assert both is not None
    assert by_name.matches_node({})
    assert both.matches_node({"a": ""})
    assert not both.matches_node({})
