"""Levels of detail as klog has them, in the levels of Python's logging, and lines made of facts.

``-v=N`` shows the lines of levels 0 to N. A caller asks ``log.isEnabledFor(V10)`` before it builds
costly facts, so that a level that is off costs one look into a dict.

Notes
-----
The levels of single lines follow kubernetes v1.36 ``pkg/scheduler/schedule_one.go``.
"""

from __future__ import annotations

import logging
from typing import Any, Final

import msgspec

V0: Final = 21
"""Shown always by ``moorage run``: the start, the lease, attempts that took long."""
V1: Final = logging.INFO
V2: Final = 19
"""The end of each attempt."""
V3: Final = 18
"""The beginning of an attempt, and of a binding."""
V5: Final = 16
"""Numbers of evaluated and feasible nodes, and the finding of PostFilter."""
V10: Final = 11
"""Each plugin's score for each node. Below are only the lines of debugging, told from 10 on."""


def level_of(verbosity: int) -> int:
    """Return the level of Python's logging from which lines are shown with ``-v=verbosity``."""
    return logging.DEBUG if verbosity >= V0 - V10 else V0 - verbosity


def verbosity_of(level: int) -> int:
    """Return the smallest ``-v`` that shows lines of a level of Python's logging."""
    return min(max(V0 - level, 0), V0 - V10)


class ObjectName(msgspec.Struct, frozen=True):
    """The name of an object as a fact: ``namespace/name`` in text, an object in JSON."""

    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name


class LogMessage(msgspec.Struct, frozen=True):
    """A message with its facts: the message object of a log record.

    Parameters
    ----------
    message
        What happened, the same for every record of the kind.
    facts
        What it happened to: numbers, texts, names of objects.
    """

    message: str
    facts: dict[str, Any]

    def __str__(self) -> str:
        """Return the line as klog writes it: ``"message" pod="a/b" feasibleNodes=3``."""
        facts = [f"{key}={_written(value)}" for key, value in self.facts.items()]
        return " ".join([_quoted(self.message), *facts])


def tell(log: logging.Logger, level: int, message: str, **facts: Any) -> None:
    """Log a message with its facts."""
    log.log(level, LogMessage(message, facts), stacklevel=2)


def _written(value: Any) -> str:
    if isinstance(value, (int, float)):
        return str(value)
    return _quoted(str(value))


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode()
