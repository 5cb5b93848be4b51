"""The schedule of a CronJob: reading it, and finding the moments at which it is due.

The API server reads a schedule to refuse an invalid one, the controller to find the moments. Rules
and texts of refusals: the standard parser of github.com/robfig/cron v3, which kubernetes v1.36
pkg/apis/batch/validation and pkg/controller/cronjob use: five fields or a word such as ``@daily``;
where neither day field begins with a star, a day needs to match only one of them. Of an interval
(``@every 5m``) only the fault is read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Final

import msgspec

from moorage.api.schedules.durations import parse_duration

_MONTHS: Final = tuple("jan feb mar apr may jun jul aug sep oct nov dec".split())  # noqa: SIM905
_DAYS: Final = tuple("sun mon tue wed thu fri sat".split())  # noqa: SIM905
# First and last value of each field, and the words for its values.
_FIELDS: Final[tuple[tuple[int, int, Sequence[str]], ...]] = (
    (0, 59, ()),
    (0, 23, ()),
    (1, 31, ()),
    (1, 12, ("", *_MONTHS)),
    (0, 6, _DAYS),
)
_WORDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_INTEGER: Final = re.compile(r"\+?[0-9]+", re.ASCII)
_INTERVAL: Final = "@every "
# As far ahead as upstream looks: February 29 comes within this time, February 30 never.
_DAYS_MAX: Final = 5 * 366
# How far back the moment before a given one is searched, nearest first.
_BACK_HOURS: Final = (1, 24, 32 * 24, _DAYS_MAX * 24)


class Schedule(msgspec.Struct, frozen=True):
    """The moments of a schedule, in a time zone.

    Parameters
    ----------
    minutes, hours, days, months, weekdays
        The values that match.
    any_day
        A day has to match both day fields, because one of them begins with a star.
    zone
        Where the fields are meant.
    """

    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    zone: tzinfo = UTC

    def after(self, moment: datetime) -> datetime | None:
        """Return the first moment later than another; None when there is none in five years."""
        return next(self._from(moment), None)

    def last_until(self, moment: datetime) -> datetime | None:
        """Return the last moment not later than another; None when there is none in five years."""
        for hours in _BACK_HOURS:
            last = None
            for found in self._from(moment - timedelta(hours=hours)):
                if found > moment:
                    break
                last = found
            if last is not None:
                return last
        return None

    def _from(self, moment: datetime) -> Iterator[datetime]:
        # Clocks are put forward or back by less than this.
        local = moment.astimezone(self.zone).replace(tzinfo=None) - timedelta(hours=3)
        for ahead in range(_DAYS_MAX):
            day = local.date() + timedelta(days=ahead)
            if not self._has(day):
                continue
            for hour in self.hours:
                if ahead or hour >= local.hour:
                    yield from (found for found in self._within(day, hour) if found > moment)

    def _within(self, day: date, hour: int) -> Iterator[datetime]:
        for minute in self.minutes:
            local = datetime(day.year, day.month, day.day, hour, minute, tzinfo=self.zone)
            found = local.astimezone(UTC)
            # A local time that clocks skip on that day comes back as another.
            if found.astimezone(self.zone).hour == hour:
                yield found

    def _has(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        matches = (day.day in self.days, day.isoweekday() % 7 in self.weekdays)
        return all(matches) if self.any_day else any(matches)


def schedule_fault(text: str) -> str:
    """Return why a text is not a schedule, "" for a schedule or an interval."""
    try:
        if text.startswith(_INTERVAL):
            parse_duration(text.removeprefix(_INTERVAL))
        else:
            read_schedule(text)
    except ValueError as error:
        return str(error)
    return ""


def read_schedule(text: str, zone: tzinfo = UTC) -> Schedule:
    """Read a schedule.

    Raises
    ------
    ValueError
        The text is not a schedule; the message says why.
    """
    if text.startswith("@") and text not in _WORDS:
        raise ValueError(f"unrecognized descriptor: {text}")
    parts = _WORDS.get(text, text).split()
    if len(parts) != len(_FIELDS):
        raise ValueError(f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]")
    found = [_values(part, *field) for part, field in zip(parts, _FIELDS, strict=True)]
    minutes, hours, days, months, weekdays = found
    return Schedule(
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=frozenset(days),
        months=frozenset(months),
        weekdays=frozenset(weekdays),
        any_day=any(part[0] in "*?" for part in (parts[2], parts[4])),
        zone=zone,
    )


def _values(text: str, first: int, last: int, words: Sequence[str]) -> set[int]:
    values: set[int] = set()
    for part in filter(None, text.split(",")):  # upstream leaves empty parts out
        span, _, step = part.partition("/")
        low, hyphen, high = span.partition("-")
        if low in ("*", "?"):  # whatever follows a hyphen, as upstream
            begin, end = first, last
        else:
            if "-" in high:
                raise ValueError(f"too many hyphens: {part}")
            begin = _number(low, words)
            end = _number(high, words) if hyphen else begin
            if step and not hyphen:
                end = last
        if "/" in step:
            raise ValueError(f"too many slashes: {part}")
        every = _number(step, ()) if "/" in part else 1
        fault = _range_fault(begin, end, every, (first, last))
        if fault:
            raise ValueError(f"{fault}: {part}")
        values.update(range(begin, end + 1, every))
    return values


def _range_fault(begin: int, end: int, every: int, limits: tuple[int, int]) -> str:
    """Return the fault of a range, in the words of upstream's parser; "" without a fault."""
    first, last = limits
    if begin < first:
        return f"beginning of range ({begin}) below minimum ({first})"
    if end > last:
        return f"end of range ({end}) above maximum ({last})"
    if begin > end:
        return f"beginning of range ({begin}) beyond end of range ({end})"
    return "" if every else "step of range should be a positive number"


def _number(text: str, words: Sequence[str]) -> int:
    if text.lower() in words and text:
        return words.index(text.lower())
    if not _INTEGER.fullmatch(text):
        wrong = f'strconv.Atoi: parsing "{text}": invalid syntax'
        raise ValueError(f"failed to parse int from {text}: {wrong}")
    return int(text)
