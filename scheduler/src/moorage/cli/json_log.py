"""Log lines as JSON objects, as ``--logging-format=json`` of Kubernetes' programs has them."""

from __future__ import annotations

import logging

import msgspec

from moorage.base.verbosity import V0, LogMessage, verbosity_of


class JsonFormatter(logging.Formatter):
    """One object a line, with kube-scheduler's keys: ``ts`` in milliseconds, ``caller``, ``msg``.

    ``v`` is the verbosity that shows the line, left out for errors; ``err`` is the traceback.
    ``logger`` and ``level`` are Python's. Each fact of a message has a key of its own.

    Notes
    -----
    Keys: kubernetes v1.36 ``staging/src/k8s.io/component-base/logs/json``.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line, without its end."""
        line: dict[str, object] = {
            "ts": record.created * 1000,
            "level": "info" if logging.DEBUG < record.levelno <= V0 else record.levelname.lower(),
            "logger": record.name,
            "caller": f"{record.module}.py:{record.lineno}",
            "msg": record.getMessage(),
        }
        if isinstance(record.msg, LogMessage):
            line |= {"msg": record.msg.message, **record.msg.facts}
        if record.levelno < logging.ERROR:
            line["v"] = verbosity_of(record.levelno)
        if record.exc_info:
            line["err"] = self.formatException(record.exc_info)
        return msgspec.json.encode(line).decode()
