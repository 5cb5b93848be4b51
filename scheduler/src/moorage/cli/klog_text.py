"""Log lines with klog's header, as Kubernetes' programs write them by default."""

from __future__ import annotations

import logging
from datetime import UTC, datetime
from typing import Final

_LETTERS: Final = {logging.WARNING: "W", logging.ERROR: "E", logging.CRITICAL: "F"}


class KlogFormatter(logging.Formatter):
    """The header ``I1123 08:55:01.123456   12345 pump.py:12] `` and the message.

    The letter is the severity: Info, Warning, Error, Fatal. Then follow month and day, local time,
    process, module and line. A traceback follows on further lines.

    Notes
    -----
    Header: k8s.io/klog v2 ``internal/buffer/buffer.go`` (FormatHeader).
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its end."""
        letter = _LETTERS.get(record.levelno, "I")
        when = datetime.fromtimestamp(record.created, UTC).astimezone()
        where = f"{record.process:>7} {record.module}.py:{record.lineno}"
        text = f"{letter}{when:%m%d %H:%M:%S.%f} {where}] {record.getMessage()}"
        if record.exc_info:
            text += f"\n{self.formatException(record.exc_info)}"
        return text
