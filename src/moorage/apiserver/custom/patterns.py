"""Regular expressions of definitions, matched in linear time.

Place in the flow: ``pattern`` of schemas and the functions of rules come here. The engine is RE2:
its language is that of Go's regexp, for which these expressions are written, and no expression
makes it try for long. It is imported with the first expression.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

# How many characters an expression may have (a guess: the longest in wide use has 400).
_LENGTH_MAX = 10_000


@lru_cache(maxsize=1024)
def compile_pattern(pattern: str) -> Any:
    """Compile an expression.

    Returns
    -------
    Any
        With ``search`` and ``finditer`` as `re.Pattern` has them.

    Raises
    ------
    ValueError
        It is too long, or not an expression to Go; the message is RE2's.
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
