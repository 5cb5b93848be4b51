"""What text in YAML means to Kubernetes, what is refused, and that writing is read back.

The table follows sigs.k8s.io/yaml v1.6 and the go-yaml v2 below it (resolve.go, decode.go).
"""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.bounds import DEPTH_MAX, OF_FILE, Bounds, check_bounds
from moorage.api.yaml_text import read_one, read_yaml, write_yaml
from moorage.base.errors import DecodeError

_TRUE = ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON")
_FALSE = ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF")
SMALL = Bounds(bytes_max=10_000, depth_max=10, values_max=1000)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[(word, True) for word in _TRUE],
        *[(word, False) for word in _FALSE],
        *[(word, None) for word in ("~", "null", "Null", "NULL")],
        *[(word, word) for word in ("yEs", "tRUE", "nULL", "oN", "=")],
        ("0", 0),
        ("-0", 0),
        ("12", 12),
        ("+12", 12),
        ("1_000", 1000),
        ("0777", 511),
        ("0o777", 511),
        ("0O17", 15),
        ("08", 8),
        ("0x1F", 31),
        ("-0x1f", -31),
        ("0b101", 5),
        ("-0b11", -3),
        ("0x", "0x"),
        ("12:30", "12:30"),
        ("1:10:10", "1:10:10"),
        ("190:20:30.15", "190:20:30.15"),
        ("9223372036854775807", 2**63 - 1),
        ("18446744073709551615", 2**64 - 1),
        ("1e3", 1000),
        ("1.0", 1),
        ("1.5", 1.5),
        (".5", 0.5),
        ("5.", 5),
        ("-1.5e-3", -0.0015),
        ("1e400", "1e400"),
        ("1.2.3", "1.2.3"),
        ("1e", "1e"),
        ("2001-01-01", "2001-01-01"),
        ("2001-12-14t21:59:43.10-05:00", "2001-12-14t21:59:43.10-05:00"),
        ("'12'", "12"),
        ('"yes"', "yes"),
        ("! 12", 12),
        ("!!str 12", "12"),
        ("!!str yes", "yes"),
        ("!!int '12'", 12),
        ("!!float 1", 1),
        ("!!timestamp 2001-01-01", "2001-01-01"),
        ("!!binary YWJj", "abc"),
        ("!own 12", "12"),
        ("|\n  a\n  b\n", "a\nb\n"),
        (">-\n  a\n  b\n", "a b"),
        (
            "{1: a, 1.5: b, true: c, 0x10: d, .inf: e}",
            dict(zip("1", "a", strict=True)) | {"1.5": "b", "true": "c", "16": "d", ".inf": "e"},
        ),
        ("{a, b: }", {"a": None, "b": None}),
        ("&x [1]", [1]),
        ("{a: &x [1], b: *x}", {"a": [1], "b": [1]}),
        ("{a: &x {b: 1, c: 1}, d: {<<: *x, c: 2}}", {"a": {"b": 1, "c": 1}, "d": {"b": 1, "c": 2}}),
        ("{<<: [{a: 1}, {a: 2, b: 2}]}", {"a": 1, "b": 2}),
        ("{'<<': 1}", {"<<": 1}),
        ("\ufeffa: 1", {"a": 1}),
        ("", None),
        ("# nothing", None),
    ],
    ids=repr,
)
def test_a_text_means_what_it_means_to_kubernetes(text: str, value: Any):
    found = read_one(text)
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            "a: !!int x",
            "line 1, column 4: cannot decode !!str `x` as a !!int",
            id="a tag that does not fit",
        ),
        pytest.param(
            "!!timestamp x",
            "line 1, column 1: cannot decode !!str `x` as a !!timestamp",
            id="no date",
        ),
        pytest.param(
            "!!bool 1", "line 1, column 1: cannot decode !!int `1` as a !!bool", id="no truth"
        ),
        pytest.param(
            "!!binary '*'",
            "line 1, column 1: !!binary value contains invalid base64 data",
            id="no base64",
        ),
        pytest.param("a: 1\nb: 2\na: 3", 'line 3: key "a" already set in map', id="a key twice"),
        pytest.param("1: a\n'1': b", 'line 2: key "1" already set in map', id="a key spelt twice"),
        pytest.param(
            "? [1]\n: 2",
            "line 1, column 3: invalid map key: a key is neither text nor a number",
            id="a list for a key",
        ),
        pytest.param(
            "~: 1",
            "line 1, column 1: invalid map key: null; a key is neither text nor a number",
            id="null for a key",
        ),
        pytest.param(
            "a: &x [1]\n? *x\n: 2",
            "line 2, column 3: invalid map key: a list or mapping; "
            "a key is neither text nor a number",
            id="an alias of a list for a key",
        ),
        pytest.param("a: .inf", "line 1, column 4: inf is no number in JSON", id="infinite"),
        pytest.param("a: *b", "line 1, column 4: found undefined alias 'b'", id="unknown alias"),
        pytest.param(
            "&a [*a]", "line 1, column 5: anchor 'a' value contains itself", id="inside itself"
        ),
        pytest.param(
            "a: &a 1\n---\n*a", "line 3, column 1: found undefined alias 'a'", id="other document"
        ),
        pytest.param(
            "<<: 1",
            "line 1, column 5: map merge requires map or sequence of maps as the value",
            id="a merge of a number",
        ),
        pytest.param(b"a: \xff", "not UTF-8: invalid start byte", id="bytes that are no UTF-8"),
        pytest.param(
            "a: 1".encode("utf-16-le"),
            'unacceptable character #x0000: control characters are not allowed in "<byte '
            'string>", position 1',
            id="UTF-16 without a mark",
        ),
        pytest.param("a: \ud800", "not UTF-8: surrogates not allowed", id="half a character"),
    ],
)
def test_a_text_without_a_meaning_is_refused_with_its_place(text: str | bytes, message: str):
    with pytest.raises(DecodeError) as refused:
        read_yaml(text)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: \x01", id="a control character"),
        pytest.param("a: [", id="an open list"),
        pytest.param("a: b: c", id="a mapping in a line"),
        pytest.param("\tb: 1", id="a tab for indentation"),
        pytest.param("%YAML 9.9\n--- a", id="another YAML"),
        pytest.param("!<", id="an open tag"),
        pytest.param("? " * 9 + "*", id="an alias without a name"),
    ],
)
def test_the_parser_says_what_is_no_yaml(text: str):
    with pytest.raises(DecodeError):
        read_yaml(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("[" * 30_000, "nested deeper than 10 levels", id="brackets"),
        pytest.param("{a: " * 3000, "nested deeper than 10 levels", id="braces"),
        pytest.param("- " * 3000, "nested deeper than 10 levels", id="dashes"),
        pytest.param(
            "\n".join(" " * depth + "a:" for depth in range(100)),
            "nested deeper than 10 levels",
            id="indentation",
        ),
        pytest.param(
            "a: &a [[[[[[1]]]]]]\nb: [[[[[*a]]]]]", "nested deeper than 10 levels", id="an alias"
        ),
        pytest.param("[" + "a," * 2000 + "]", "more than 1000 values", id="items"),
        pytest.param(
            "- &a [x, x, x, x, x, x, x, x]\n"
            + "".join(f"- &{c} [{','.join(['*' + chr(ord(c) - 1)] * 8)}]\n" for c in "bcdef"),
            "more than 1000 values",
            id="a billion laughs",
        ),
        pytest.param(
            "- &a {" + ",".join(f"k{n}: 1" for n in range(99)) + "}\n" + "- {<<: *a}\n" * 99,
            "more than 1000 values",
            id="merges",
        ),
        pytest.param("---\n" * 2000, "more than 1000 values", id="documents"),
        pytest.param("a" * 20_000, "longer than 10000 bytes", id="length"),
        pytest.param(
            "".join(f"%TAG !a{n}! tag:x\n" for n in range(200)) + "--- a",
            "more than 100 lines that begin with %",
            id="directives",
        ),
    ],
)
def test_a_bound_is_checked_before_anything_is_built(text: str, message: str):
    bounds = SMALL if len(text) <= 10_000 or message.startswith("longer") else OF_FILE
    shown = message if bounds is SMALL else message.replace("10 levels", f"{DEPTH_MAX} levels")
    with pytest.raises(DecodeError, match=shown):
        read_yaml(text, bounds)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: 1" + ":10" * 900_000, id="base 60"),
        pytest.param("a: 0" + "7" * 2_700_000, id="an octal number"),
        pytest.param("a: " + "9" * 2_700_000, id="a decimal number"),
        pytest.param("a: 0." + "9" * 2_700_000, id="a fraction"),
        pytest.param("a: 1" + "_0" * 900_000, id="a number with marks"),
    ],
)
def test_a_long_number_is_text(text: str):
    assert read_one(text) == {"a": text[3:]}


def test_a_key_given_twice_can_be_told_instead():
    told: list[str] = []
    assert read_yaml("{a: 1, a: 2}", repeated=told) == [{"a": 2}]
    assert told == ['line 1: key "a" already set in map']


def test_several_documents_are_read_in_order():
    assert read_yaml("a: 1\n---\n---\n- b\n...\n") == [{"a": 1}, None, ["b"]]
    with pytest.raises(DecodeError, match="expected a single document, found 2"):
        read_one("a\n---\nb")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: 1\n---\n", id="a mark at the end"),
        pytest.param("---\n---\n# nothing yet\n---\na: 1", id="empty documents before"),
        pytest.param('{\n\t"a": 1\n}\n---\n', id="JSON with a mark at the end"),
    ],
)
def test_empty_documents_do_not_count_where_one_is_expected(text: str):
    assert read_one(text) == {"a": 1}


def test_an_alias_is_a_copy_of_its_anchor():
    found = read_one("a: &x {b: []}\nc: *x")
    found["a"]["b"].append(1)
    assert found["c"] == {"b": []}


def _nested(depth: int) -> Any:
    value: Any = []
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize("depth", [DEPTH_MAX, DEPTH_MAX + 1])
def test_json_is_as_deep_as_yaml_may_be(depth: int):
    value = _nested(depth)
    text = write_yaml(value)
    if depth <= DEPTH_MAX:
        check_bounds(value, OF_FILE)
        assert read_one(text) == value
        return
    with pytest.raises(DecodeError, match="nested deeper than 200 levels"):
        check_bounds(value, OF_FILE)
    with pytest.raises(DecodeError, match="nested deeper than 200 levels"):
        read_one(text)


def test_the_number_of_values_in_json_is_bounded():
    check_bounds([0] * 999, SMALL)
    with pytest.raises(DecodeError, match="more than 1000 values"):
        check_bounds([[0] * 500, {str(n): 0 for n in range(500)}], SMALL)


def test_yaml_is_written_as_people_write_it():
    value = {"b": 1, "a": ["y", "12:30", "1e3", "text", None, True, 1.5, {}, []], "t": "x\ny\n"}
    assert write_yaml(value, sort_keys=True) == (
        "a:\n- 'y'\n- '12:30'\n- '1e3'\n- text\n- null\n- true\n- 1.5\n- {}\n- []\n"
        "b: 1\nt: |\n  x\n  y\n"
    )
    assert write_yaml({"b": 1, "a": "0o17"}) == "b: 1\na: '0o17'\n"
    assert write_yaml("text") == "text\n"


_ODD = [
    *("null", "~", "1e3", "0x1f", "017", "0o17", "1_0", "2026-01-01", "=", "<<", "12:30", ".5"),
    *("-.inf", "a\nb", "08", "1:2", "|", "", " a", "a ", "- a", "a: b", "#", "%a", "...", "---"),
    *("\n", " \n a", "a\r\nb", "\u2028", "\x85", "\ufeff"),
]
_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
    [*_TRUE, *_FALSE, *_ODD]
)
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)


@given(_VALUES)
def test_written_yaml_reads_back_as_the_same_value(value: Any):
    text = write_yaml(value)
    assert read_one(text) == value
    # Readers of YAML 1.1, such as Python's own, take it for the same.
    assert yaml.safe_load(text) == value


@given(st.text() | st.binary())
def test_any_text_is_read_or_refused(text: str | bytes):
    with contextlib.suppress(DecodeError):
        read_yaml(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: 1".encode("utf-16"), id="UTF-16, as a redirection in PowerShell writes"),
        pytest.param(b"\xfe\xff" + "a: 1".encode("utf-16-be"), id="UTF-16, the other way round"),
        pytest.param("a: 1".encode("utf-8-sig"), id="UTF-8 with a mark"),
    ],
)
def test_a_byte_order_mark_says_the_encoding(text: bytes) -> None:
    """Kubeconfigs and scenarios are read by it, as files with objects are."""
    assert read_one(text) == {"a": 1}
