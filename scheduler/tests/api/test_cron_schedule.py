"""Scope: which moments a schedule has, by day, by zone, and next to another moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from moorage.api.schedules.cron_schedule import read_schedule

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)  # a Thursday


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "following", "last"),
    [
        pytest.param("* * * * *", "2026-01-01 12:01", "2026-01-01 12:00", id="every minute"),
        pytest.param("*/15 * * * *", "2026-01-01 12:15", "2026-01-01 12:00", id="steps"),
        pytest.param("5/20 * * * *", "2026-01-01 12:05", "2026-01-01 11:45", id="steps from 5"),
        pytest.param("0 3 * * *", "2026-01-02 03:00", "2026-01-01 03:00", id="every night"),
        pytest.param("@hourly", "2026-01-01 13:00", "2026-01-01 12:00", id="a word"),
        pytest.param("@weekly", "2026-01-04 00:00", "2025-12-28 00:00", id="on Sundays"),
        pytest.param("0 9 * * mon-fri", "2026-01-02 09:00", "2026-01-01 09:00", id="names"),
        pytest.param("0 0 13 * 5", "2026-01-02 00:00", "2025-12-26 00:00", id="one of two days"),
        pytest.param("0 0 13 * *", "2026-01-13 00:00", "2025-12-13 00:00", id="a day of a month"),
        pytest.param("0 0 29 2 *", "2028-02-29 00:00", "2024-02-29 00:00", id="a leap day"),
        pytest.param("0 8,20 1 feb ?", "2026-02-01 08:00", "2025-02-01 20:00", id="a list"),
        pytest.param("0 0 30 2 *", None, None, id="a day that never comes"),
    ],
)
def test_the_next_and_the_last_moment_of_a_schedule(text, following, last):
    schedule = read_schedule(text)
    assert schedule.after(NOON) == (following and at(following))
    assert schedule.last_until(NOON) == (last and at(last))


@pytest.mark.parametrize(
    ("text", "start", "found"),
    [
        pytest.param("0 12 * * *", "2026-01-01 12:00", "2026-01-02 11:00", id="winter"),
        pytest.param("0 12 * * *", "2026-07-01 12:00", "2026-07-02 10:00", id="summer"),
        # 2026-03-29: 2:00 becomes 3:00.
        pytest.param("30 2 * * *", "2026-03-28 12:00", "2026-03-30 00:30", id="a time left out"),
    ],
)
def test_a_zone_says_when_that_is(text, start, found):
    schedule = read_schedule(text, ZoneInfo("Europe/Berlin"))
    assert schedule.after(at(start)) == at(found)


SCALAR = [
    pytest.param(
        "*/7 3-5 * * *",
        (range(0, 60, 7), range(3, 6), range(1, 32), range(1, 13), range(7)),
        all,
        id="stars for days",
    ),
    pytest.param(
        "0 0 1,15 * 3", ({0}, {0}, {1, 15}, range(1, 13), {3}), any, id="one of two day fields"
    ),
    pytest.param(
        "10-50/20 */6 * jan-jun 1-5",
        ({10, 30, 50}, {0, 6, 12, 18}, range(1, 32), range(1, 7), range(1, 6)),
        all,
        id="spans and steps",
    ),
]


@pytest.mark.parametrize(("text", "fields", "days"), SCALAR)
def test_the_moments_of_two_weeks_match_the_fields_of_the_schedule(text, fields, days):
    schedule = read_schedule(text)
    minute, hour, day, month, weekday = fields

    def matches(moment: datetime) -> bool:
        fits = days((moment.day in day, moment.isoweekday() % 7 in weekday))
        return moment.minute in minute and moment.hour in hour and fits and moment.month in month

    begin = at("2026-01-01 00:00")
    wanted = [
        moment for n in range(1, 14 * 1440) if matches(moment := begin + timedelta(minutes=n))
    ]
    found = []
    coming = schedule.after(begin)
    while coming is not None and coming < begin + timedelta(days=14):
        found.append(coming)
        coming = schedule.after(coming)
    assert found == wanted


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("* * * *", "expected exactly 5 fields, found 4: [* * * *]", id="too few"),
        pytest.param("60 * * * *", "end of range (60) above maximum (59): 60", id="too large"),
        pytest.param("* * 0 * *", "beginning of range (0) below minimum (1): 0", id="too small"),
        pytest.param(
            "* * * * 5-1", "beginning of range (5) beyond end of range (1): 5-1", id="backwards"
        ),
        pytest.param("*/0 * * * *", "step of range should be a positive number: */0", id="no step"),
        pytest.param("1-2-3 * * * *", "too many hyphens: 1-2-3", id="a range of three"),
        pytest.param("*/2/3 * * * *", "too many slashes: */2/3", id="two steps"),
        pytest.param(
            "x * * * *",
            'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax',
            id="a letter",
        ),
        pytest.param("@never", "unrecognized descriptor: @never", id="no such word"),
    ],
)
def test_text_that_is_no_schedule_is_refused_with_the_reason(text, why):
    with pytest.raises(ValueError) as error:  # noqa: PT011  (the text is compared)
        read_schedule(text)
    assert str(error.value) == why
