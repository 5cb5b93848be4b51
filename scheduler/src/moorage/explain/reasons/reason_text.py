"""The text about one code."""

from __future__ import annotations

import msgspec


class ReasonText(msgspec.Struct, frozen=True):
    """What a code means, for a person who has a pod with it.

    Parameters
    ----------
    what
        What it is.
    see
        A command that shows it.
    fix
        What to do about it.
    example
        A message that has the code.
    """

    what: str
    see: str
    fix: str
    example: str
