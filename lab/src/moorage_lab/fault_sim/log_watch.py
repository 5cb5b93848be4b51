"""The messages that the parts log during a run: kept from the terminal, errors noted."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from moorage.base.entry_points import PACKAGES

OnError = Callable[[str], None]


# The end of a scheduler that was stopped or cut off for longer than its lease; it is meant so.
_EXPECTED = frozenset({"Leaderelection lost"})
# A disk that is meant to fail (`moorage_lab.fault_sim.fault_injector`).
_DISK = ("the disk failed in a write", "writes are refused", "the last writes are lost")
# Plugins that are meant to break (`moorage_lab.fault_sim.broken_plugin` and
# `moorage_lab.fault_sim.delayed_step`).
_MEANT = ("plugin BrokenPlugin", "the delayed step failed", *_DISK)


class _ErrorsOnly(logging.Handler):
    """Tells of each message of level error, and of each with a traceback."""

    def __init__(self, on_error: OnError) -> None:
        super().__init__(logging.WARNING)
        self._on_error = on_error

    def emit(self, record: logging.LogRecord) -> None:
        if record.levelno >= logging.ERROR or record.exc_info:
            text = record.getMessage()
            if text in _EXPECTED or any(each in text for each in _MEANT):
                return
            if record.exc_info and record.exc_info[1] is not None:
                text += f": {record.exc_info[1]!r}"
            self._on_error(f"{record.name}: {text}")


@contextmanager
def watched_log(on_error: OnError) -> Iterator[None]:
    """Keep the parts' messages back, which warn without end under faults, but tell of errors."""
    handler = _ErrorsOnly(on_error)
    loggers = [logging.getLogger(name) for name in PACKAGES]
    before = [(each.propagate, each.level, each.handlers[:]) for each in loggers]
    for each in loggers:
        each.handlers[:] = [handler]
        each.propagate = False
        each.setLevel(logging.WARNING)
    try:
        yield
    finally:
        for each, (propagate, level, handlers) in zip(loggers, before, strict=True):
            each.propagate, each.level, each.handlers[:] = propagate, level, handlers
