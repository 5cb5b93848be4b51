"""The trace of a simulation: what happened, and its digest."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable

import msgspec

from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage.client.transport import Answer, Call

_COLLECTION = re.compile(r"/(api|apis/[^/]+)/[^/]+(/namespaces/[^/]+)?/[^/]+")


class _Meta(msgspec.Struct):
    name: str = ""


class _ObjectWithMeta(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class Trace:
    """The lines that tell what happened, and their digest."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock
        self.lines: list[str] = []

    def add_line(self, who: str, what: str) -> None:
        """Add a line with the time."""
        self.lines.append(f"{self._clock.monotonic_ns() / NS_PER_SECOND:12.6f} {who:<14} {what}")

    def note_call(self, who: str, call: Call, answer: Answer | None) -> None:
        """Add a line about a call and its status (0: no answer); a creation names its object."""
        status = answer.status if answer else 0
        name = _created(call, answer) if call.method == "POST" else ""
        self.add_line(who, f"{call.method} {call.path}{name and ' '}{name} -> {status}")

    @property
    def digest(self) -> str:
        """SHA-256 of all lines."""
        return hashlib.sha256("\n".join(self.lines).encode()).hexdigest()


def about(pod: str, lines: Iterable[str]) -> list[str]:
    """Return the lines of a trace that are about a pod.

    Parameters
    ----------
    pod
        ``namespace/name``, or the name of a pod of the namespace ``default``.
    lines
        The trace.
    """
    namespace, _, name = pod.rpartition("/")
    path = f"/namespaces/{namespace or 'default'}/pods"
    there = re.compile(f"{re.escape(path)}[/ ]{re.escape(name)}[/ ]")
    return [line for line in lines if there.search(line)]


def _created(call: Call, answer: Answer | None) -> str:
    """Return the name of the object that a POST makes; "" where it makes none, or nobody knows.

    The server makes up a name where the user left it out, so its answer is asked first.
    """
    if not _COLLECTION.fullmatch(call.path):
        return ""
    created = answer is not None and answer.status == 201
    body = answer.body if answer is not None and created else call.whole_body
    return msgspec.json.decode(body, type=_ObjectWithMeta).metadata.name
