"""What a plugin raises becomes the status Error, with its name: one attempt fails, nothing else."""

from __future__ import annotations

import logging

from moorage.framework.cycle_state import StateMissingError
from moorage.framework.status import Code, Status

_log = logging.getLogger(__name__)


def contained(plugin: str, point: str, problem: Exception) -> Status:
    """Turn an exception a plugin raised into the status Error."""
    if not isinstance(problem, StateMissingError):
        _log.exception("plugin %s failed at %s", plugin, point, exc_info=problem)
    return Status(Code.ERROR, (str(problem) or type(problem).__name__,), plugin)
