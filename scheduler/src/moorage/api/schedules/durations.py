"""Durations as Go writes them (``1m30s``) to nanoseconds and back.

Used by configurations, by the schedules of CronJobs, and by the options of commands.
"""

from __future__ import annotations

import re
from typing import Final

_UNIT_NS: Final[dict[str, int]] = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "μs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "m": 60_000_000_000,
    "h": 3_600_000_000_000,
}
_PART: Final = re.compile(r"(\d+\.?\d*|\.\d+)(ns|us|µs|μs|ms|s|m|h)")
_NUMBER: Final = re.compile(r"\d+(\.\d+)?")
_MAX_NS: Final = 2**63 - 1


def parse_duration(text: str) -> int:
    """Return a duration in nanoseconds.

    Parameters
    ----------
    text
        A signed sequence of decimals with units, e.g. ``300ms``, ``-1.5h``, ``2h45m``, or ``0``.

    Raises
    ------
    ValueError
        Not a duration, or longer than 64 bits of nanoseconds (about 292 years).

    Notes
    -----
    Mirrors Go's ``time.ParseDuration``: a fraction below one nanosecond is cut off.
    """
    sign, rest = (-1, text[1:]) if text[:1] == "-" else (1, text[1:] if text[:1] == "+" else text)
    if rest == "0":
        return 0
    total, position = 0, 0
    while match := _PART.match(rest, position):
        whole, _, fraction = match[1].partition(".")
        unit = _UNIT_NS[match[2]]
        total += int(whole or "0") * unit + int(fraction or "0") * unit // 10 ** len(fraction)
        position = match.end()
    if position == 0 or position != len(rest):
        raise ValueError(f"invalid duration {text!r}: write it like 15s or 1m30s")
    if total > _MAX_NS:
        raise ValueError(f"invalid duration {text!r}: longer than 292 years")
    return sign * total


def parse_seconds(text: str) -> float:
    """Return the seconds of a duration that a person typed.

    Parameters
    ----------
    text
        As for `parse_duration`, or a number alone, which counts seconds: ``90``, ``2.5``.

    Raises
    ------
    ValueError
        Neither a duration nor a number.
    """
    unit = "s" if _NUMBER.fullmatch(text.strip()) else ""
    return parse_duration(f"{text.strip()}{unit}") / _UNIT_NS["s"]


def format_duration(duration_ns: int) -> str:
    """Return a duration as Go prints it: ``15s``, ``1m30s``, ``10m0s``, ``1.5ms``, ``0s``."""
    sign = "-" if duration_ns < 0 else ""
    left = abs(duration_ns)
    if left == 0:
        return "0s"
    for unit in ("ns", "µs", "ms"):
        if left < _UNIT_NS[unit] * 1000 and left < _UNIT_NS["s"]:
            return f"{sign}{_decimal(left, _UNIT_NS[unit])}{unit}"
    minutes, below = divmod(left, _UNIT_NS["m"])
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(below, _UNIT_NS['s'])}s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else f"{sign}{text}"


def _decimal(value: int, unit: int) -> str:
    whole, below = divmod(value, unit)
    if not below:
        return str(whole)
    digits = str(below).rjust(len(str(unit)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}"
