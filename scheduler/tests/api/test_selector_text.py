"""Label and field selectors in the form of command lines and queries."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.selectors import (
    Operator,
    Requirement,
    make_selector,
    parse_field_selector,
    parse_label_selector,
)

R, O = Requirement, Operator  # noqa: E741


@pytest.mark.parametrize(
    ("text", "requirements"),
    [
        pytest.param("", [], id="empty selects everything"),
        pytest.param("  ", [], id="blanks select everything"),
        pytest.param("a=b", [R("a", O.IN, ("b",))], id="equal"),
        pytest.param("a==b", [R("a", O.IN, ("b",))], id="equal twice"),
        pytest.param("a!=b", [R("a", O.NOT_IN, ("b",))], id="unequal"),
        pytest.param("a", [R("a", O.EXISTS)], id="exists"),
        pytest.param("!a", [R("a", O.DOES_NOT_EXIST)], id="does not exist"),
        pytest.param("! a", [R("a", O.DOES_NOT_EXIST)], id="with a blank"),
        pytest.param("a in (c,b)", [R("a", O.IN, ("b", "c"))], id="in a list"),
        pytest.param("a notin (b)", [R("a", O.NOT_IN, ("b",))], id="not in a list"),
        pytest.param("a in(b, c )", [R("a", O.IN, ("b", "c"))], id="blanks do not matter"),
        pytest.param("a in (,b)", [R("a", O.IN, ("", "b"))], id="an empty place is a value"),
        pytest.param("a in (b,)", [R("a", O.IN, ("", "b"))], id="also the last one"),
        pytest.param("a=", [R("a", O.IN, ("",))], id="nothing after the sign is a value"),
        pytest.param("a=,b", [R("a", O.IN, ("",)), R("b", O.EXISTS)], id="also before a comma"),
        pytest.param("in=notin", [R("in", O.IN, ("notin",))], id="in is a word like others"),
        pytest.param("a>5,a<9", [R("a", O.GT, ("5",)), R("a", O.LT, ("9",))], id="comparison"),
        pytest.param(
            "x.io/a=b , c in (d),!e",
            [R("x.io/a", O.IN, ("b",)), R("c", O.IN, ("d",)), R("e", O.DOES_NOT_EXIST)],
            id="several",
        ),
    ],
)
def test_label_selectors(text, requirements):
    assert parse_label_selector(text) == make_selector(requirements)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a=b,", id="a comma at the end"),
        pytest.param(",a", id="a comma at the start"),
        pytest.param("a,,b", id="two commas"),
        pytest.param("a b", id="two words"),
        pytest.param("a=b c", id="two values"),
        pytest.param("=b", id="no key"),
        pytest.param("a=!b", id="a sign for a value"),
        pytest.param("!a=b", id="negation with a value"),
        pytest.param("a in", id="a list that is missing"),
        pytest.param("a in b", id="a list without brackets"),
        pytest.param("a in ()", id="an empty list"),
        pytest.param("a in (b", id="a list left open"),
        pytest.param("a in (b c)", id="a list without comma"),
        pytest.param("a>b", id="comparison with a word"),
        pytest.param("-a", id="a bad key"),
        pytest.param("a=b_", id="a bad value"),
        pytest.param("!", id="a negation of nothing"),
        pytest.param("(a)", id="brackets"),
    ],
)
def test_bad_label_selectors(text):
    with pytest.raises(ValueError, match=r"found|Invalid value"):
        parse_label_selector(text)


@given(st.text(alphabet="ab,=!()<> in\\", max_size=12))
def test_any_text_is_parsed_or_refused_with_value_error(text):
    for parse in (parse_label_selector, parse_field_selector):
        with contextlib.suppress(ValueError):  # any other exception is the failure
            parse(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", [], id="empty"),
        pytest.param("spec.nodeName=n1", [("spec.nodeName", "=", "n1")], id="equal"),
        pytest.param("a==b", [("a", "=", "b")], id="equal twice"),
        pytest.param(
            "status.phase!=Succeeded,status.phase!=Failed",
            [("status.phase", "!=", "Succeeded"), ("status.phase", "!=", "Failed")],
            id="the scheduler's selector of pods",
        ),
        pytest.param("spec.nodeName=", [("spec.nodeName", "=", "")], id="an empty value"),
        pytest.param("a=b,,c=d", [("a", "=", "b"), ("c", "=", "d")], id="empty parts are skipped"),
        pytest.param(r"a=b\,c\=d\\", [("a", "=", r"b,c=d" + "\\")], id="escapes"),
    ],
)
def test_field_selectors(text, expected):
    assert parse_field_selector(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a", id="no sign"),
        pytest.param("a=b,c", id="a part without sign"),
        pytest.param(r"a=\b", id="an unknown escape"),
        pytest.param("a=b=c", id="a sign that is not escaped"),
        pytest.param("a=b\\", id="an escape of nothing"),
    ],
)
def test_bad_field_selectors(text):
    with pytest.raises(ValueError, match="selector"):
        parse_field_selector(text)


@pytest.mark.parametrize(
    ("text", "found", "expected"),
    [
        pytest.param("a=b", "b", True, id="equal"),
        pytest.param("a=b", "c", False, id="another"),
        pytest.param("a!=b", "c", True, id="unequal"),
        pytest.param("a!=b", "b", False, id="the same"),
        pytest.param("a=", "", True, id="an absent field is empty"),
    ],
)
def test_a_field_requirement(text, found, expected):
    assert parse_field_selector(text)[0].matches(found) is expected
