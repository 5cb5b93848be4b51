"""Go durations: known texts, refused texts, and printing what was parsed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.schedules.durations import format_duration, parse_duration

S = 1_000_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("0", 0, id="zero needs no unit"),
        pytest.param("15s", 15 * S, id="seconds"),
        pytest.param("1m30s", 90 * S, id="several parts add up"),
        pytest.param("-1.5h", -5400 * S, id="sign and fraction"),
        pytest.param("+300ms", 300_000_000, id="plus sign and milliseconds"),
        pytest.param("1us1µs", 2000, id="both spellings of micro"),
        pytest.param(".5s", S // 2, id="no digit before the point"),
        pytest.param("1.9ns", 1, id="below a nanosecond is cut off"),
    ],
)
def test_durations_are_read_as_go_reads_them(text, expected):
    assert parse_duration(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("15", id="no unit"),
        pytest.param("s", id="no number"),
        pytest.param("1 s", id="a space"),
        pytest.param("1d", id="days are no unit in Go"),
        pytest.param("--1s", id="two signs"),
        pytest.param("300000h1000000h10000000h", id="more than 64 bits"),
    ],
)
def test_faulty_durations_are_refused(text):
    with pytest.raises(ValueError, match="invalid duration"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("duration_ns", "expected"),
    [
        pytest.param(0, "0s", id="zero"),
        pytest.param(1, "1ns", id="nanoseconds"),
        pytest.param(1100, "1.1µs", id="microseconds with a fraction"),
        pytest.param(1_500_000, "1.5ms", id="milliseconds with a fraction"),
        pytest.param(15 * S, "15s", id="seconds"),
        pytest.param(90 * S, "1m30s", id="minutes"),
        pytest.param(600 * S, "10m0s", id="full minutes keep their seconds"),
        pytest.param(-3600 * S, "-1h0m0s", id="negative hours"),
    ],
)
def test_durations_are_printed_as_go_prints_them(duration_ns, expected):
    assert format_duration(duration_ns) == expected


@given(st.integers(-(2**63) + 1, 2**63 - 1))
def test_printed_durations_read_back(duration_ns):
    assert parse_duration(format_duration(duration_ns)) == duration_ns
