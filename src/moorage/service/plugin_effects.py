"""The effects plugins may answer with, carried out: the `PluginEffects` of a running scheduler.

Handles are made before the queue and the recorder are, so those are connected afterwards; what a
plugin asks for while it is being constructed comes too early and is dropped.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from typing import Protocol

from moorage.api.pod import Pod
from moorage.base.errors import MoorageError
from moorage.client.event_series import EventNote
from moorage.framework.effects import EventType, WaitingPod
from moorage.service.pod_writes import reference, sendable
from moorage.service.waiting import WaitingPods

Activate = Callable[[Iterable[Pod]], None]
Record = Callable[[EventNote], None]

_log = logging.getLogger(__name__)


class Spawn(Protocol):
    """Starts a task of the scheduler's own."""

    def __call__(self, coro: Coroutine[object, object, None], *, name: str) -> object:
        """Start it."""
        ...


class LivePluginEffects:
    """Passes on what plugins ask for.

    Parameters
    ----------
    waiting
        The pods held at Permit.

    Attributes
    ----------
    activate_pods
        Moves pods to activeQ; None until there is a queue.
    record
        Takes Events; None where none are written.
    spawn
        Starts tasks; None where nothing is written.
    """

    def __init__(self, waiting: WaitingPods) -> None:
        self._waiting = waiting
        self.activate_pods: Activate | None = None
        self.record: Record | None = None
        self.spawn: Spawn | None = None

    def waiting_pods(self) -> Sequence[WaitingPod]:
        """Return every pod that waits at Permit, the longest waiting first."""
        return self._waiting.all()

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        """Return a pod if it waits at Permit and has not been decided about."""
        return self._waiting.find(uid)

    def allow(self, uid: str, plugin: str) -> bool:
        """Let a waiting pod go as far as a plugin is concerned."""
        return self._waiting.allow(uid, plugin)

    def reject(self, uid: str, plugin: str, message: str) -> bool:
        """Turn a waiting pod away on a plugin's account."""
        return self._waiting.reject(uid, plugin, message)

    def activate(self, pods: Iterable[Pod]) -> None:
        """Have pods tried again at once."""
        if self.activate_pods is not None:
            self.activate_pods(pods)

    def emit(self, pod: Pod, *, kind: EventType, reason: str, action: str, note: str) -> None:
        """Emit an Event about a pod, in the name of its profile."""
        if self.record is not None:
            self.record(
                EventNote(
                    regarding=reference(pod),
                    controller=pod.spec.scheduler_name,
                    type=kind,
                    reason=sendable(reason),
                    action=sendable(action),
                    note=sendable(note),
                )
            )

    def in_background(self, what: str, work: Callable[[], Awaitable[None]]) -> None:
        """Have something written to the API that nobody waits for."""
        if self.spawn is not None:
            self.spawn(_contained(what, work), name=what)


async def _contained(what: str, work: Callable[[], Awaitable[None]]) -> None:
    """Do it; the scheduler goes on whatever becomes of it."""
    try:
        await work()
    except MoorageError as problem:
        _log.warning("%s failed: %s", what, problem)
    except Exception:
        _log.exception("%s broke", what)
