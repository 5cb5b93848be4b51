"""Keeps a plugin that fails for every pod from filling the log."""

from __future__ import annotations

import logging
from types import TracebackType

# One line a minute tells that it goes on; a guess at what a person can follow.
_QUIET_SECONDS = 60.0
_KEYS_MAX = 1000
_ROOM = "moorage.framework"


class _FailureCount:
    """One kind of failure: when it was logged last, and how often it has happened since."""

    __slots__ = ("count", "logged")

    def __init__(self, logged: float) -> None:
        self.logged = logged
        self.count = 0


class RepeatedFailures(logging.Filter):
    """Passes the first failure of its kind with its traceback, then a line a minute with a count.

    A kind is the plugin, the extension point and the type of the exception. Other records pass.
    """

    def __init__(self) -> None:
        super().__init__()
        self._counts: dict[tuple[object, ...], _FailureCount] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log a record; may shorten it."""
        if not record.exc_info or not record.name.startswith(_ROOM):
            return True
        kind, problem, raised_in = record.exc_info
        pod = _pod_of(raised_in)
        args = record.args if isinstance(record.args, tuple) else ()
        # The texts name plugin and extension point; numbers, and names of pods, differ.
        texts = [each for each in args if isinstance(each, str) and each != pod]
        key = (record.name, record.msg, *texts, kind)
        failures = self._counts.get(key)
        if failures is None:
            if len(self._counts) >= _KEYS_MAX:
                self._counts.clear()
            self._counts[key] = _FailureCount(record.created)
            if pod and pod not in args:
                record.msg, record.args = "%s, for pod %s", (record.getMessage(), pod)
            return True
        failures.count += 1
        seconds = record.created - failures.logged
        if seconds < _QUIET_SECONDS:
            return False
        what = " at ".join(texts[:2])
        record.msg = "plugin %s failed %d more times in %.0f s, the last time for pod %s: %s"
        record.args = (what, failures.count, seconds, pod or "unknown", problem)
        record.exc_info = record.exc_text = None
        failures.logged, failures.count = record.created, 0
        return True


def _pod_of(raised_in: TracebackType | None) -> str:
    """Return the pod that the innermost function with a ``pod`` was called for; "" for none.

    Read off the stack, so that no call has to pass a pod on for the log's sake.
    """
    pod_name = ""
    while raised_in is not None:
        pod = raised_in.tb_frame.f_locals.get("pod")
        name = getattr(getattr(pod, "pod", pod), "full_name", "")
        pod_name = name if isinstance(name, str) and name else pod_name
        raised_in = raised_in.tb_next
    return pod_name
