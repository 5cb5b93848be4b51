"""The log of HTTP calls that are no HTTP: one short line instead of the library's traceback.

aiohttp logs bytes that it cannot read as an error of the server, with a traceback that quotes them.
Anybody who reaches the port can send such bytes, and they may contain a token.
"""

from __future__ import annotations

import logging

_log = logging.getLogger(__name__)
_LIBRARY = "aiohttp.server"


def log_malformed_calls_shortly() -> None:
    """Have malformed calls logged in one line at level INFO, without their bytes; idempotent."""
    logging.getLogger(_LIBRARY).addFilter(_without_malformed)


def _without_malformed(record: logging.LogRecord) -> bool:
    """Drop the library's record of a call that it refused, and log a line in its place."""
    problem = record.exc_info[1] if record.exc_info else None
    # The library's exception for a call at fault knows the HTTP status of its answer.
    status = getattr(problem, "code", None)
    if not isinstance(status, int) or not 400 <= status < 500:
        return True
    _log.info("refused a malformed call with %d: %s", status, type(problem).__name__)
    return False
