"""Regular expressions of definitions, matched in linear time.

Place in the flow: ``pattern`` of schemas and the functions of rules are compiled here. The engine
is RE2, whose language is that of Go's regexp, and these expressions are written for Go. RE2 matches
in linear time. It is imported with the first expression.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

# Longest expression in characters (a guess: the longest in wide use has 400).
_LENGTH_MAX = 10_000


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Any:
    """Compile an expression.

    Returns
    -------
    Any
        With ``search`` and ``finditer`` of `re.Pattern`.

    Raises
    ------
    ValueError
        The expression is too long, or not one that Go accepts; the message is RE2's.
    """
    import re2

    if len(pattern) > _LENGTH_MAX:
        raise ValueError(f"longer than {_LENGTH_MAX} characters")
    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        told = error.args[0] if error.args else ""
        why = told.decode(errors="replace") if isinstance(told, bytes) else str(told)
        raise ValueError(f"error parsing regexp: {why}") from error
    except UnicodeEncodeError as error:
        raise ValueError("it is not UTF-8") from error
