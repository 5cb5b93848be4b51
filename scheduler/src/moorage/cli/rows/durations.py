"""Durations as people read them; pure."""

from __future__ import annotations

from typing import Final

_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400


def duration(seconds: float) -> str:
    """Return a duration in at most two units: ``1.4s``, ``4m12s``, ``3h5m``, ``2d4h``."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f}s"
    whole = round(seconds)
    if whole < _MINUTE:
        return f"{whole}s"
    for large, small, names in ((_DAY, _HOUR, "dh"), (_HOUR, _MINUTE, "hm"), (_MINUTE, 1, "ms")):
        if whole >= large:
            more = whole % large // small
            return f"{whole // large}{names[0]}" + (f"{more}{names[1]}" if more else "")
    raise AssertionError("a minute is the shortest of the large units")
