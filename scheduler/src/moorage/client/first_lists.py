"""Tells why the first lists of reflectors will not come, so that a program ends with the reason."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from moorage.base.errors import ApiError, MoorageError, RefusedError, UnauthorizedError

_FORBIDDEN: Final = 403


def check_first_lists(errors: Mapping[str, MoorageError | None], *, reader: str) -> None:
    """Pass while waiting for the first lists may help.

    Parameters
    ----------
    errors
        The last error of each reflector, by the plural of its kind.
    reader
        The program that reads, for the message.

    Raises
    ------
    MoorageError
        The server forbids a list, refuses our credentials, or refuses the connection.
    """
    forbidden = [name for name, error in errors.items() if _code(error) == _FORBIDDEN]
    if forbidden:
        raise MoorageError(
            f"the server forbids to read {', '.join(forbidden)}: {reader} needs get, list and "
            "watch on them, and no other right"
        )
    for error in errors.values():
        if isinstance(error, RefusedError | UnauthorizedError):
            raise error


def _code(error: MoorageError | None) -> int:
    return error.code if isinstance(error, ApiError) else 0
