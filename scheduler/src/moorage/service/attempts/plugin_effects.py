"""The effects plugins may answer with, carried out: the `PluginEffects` of a running scheduler."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

import msgspec

from moorage.api.pod import Pod
from moorage.base.errors import MoorageError
from moorage.client.event_series import EventNote
from moorage.framework.effects import EventType, WaitingPod
from moorage.service.binding.pod_writes import reference, sendable
from moorage.service.binding.waiting import WaitingPods
from moorage.state.activations import Activations

Record = Callable[[EventNote], None]

_log = logging.getLogger(__name__)


class Spawn(Protocol):
    """Starts a task of the scheduler's own."""

    def __call__(self, coro: Coroutine[object, object, None], *, name: str) -> object:
        """Start the task."""
        ...


class ApiEffects(msgspec.Struct, frozen=True, kw_only=True):
    """The way of a plugin's effects to the API server.

    Parameters
    ----------
    record
        Takes Events.
    spawn
        Starts tasks.
    ready
        Whether scheduling has started. Until then another replica may be scheduling, so writes that
        plugins ask for are dropped.
    """

    record: Record
    spawn: Spawn
    ready: Callable[[], bool]


class LivePluginEffects:
    """Passes on the effects that plugins ask for.

    Parameters
    ----------
    waiting
        The pods held at Permit.
    activations
        Takes the pods to be tried again.
    api
        The way to the API server; None where nothing is written.
    """

    def __init__(
        self, waiting: WaitingPods, activations: Activations, api: ApiEffects | None
    ) -> None:
        self._waiting = waiting
        self._activations = activations
        self._api = api
        self._withheld = False

    @contextmanager
    def withheld(self) -> Iterator[None]:
        """Carry out no effect while the context is open."""
        before, self._withheld = self._withheld, True
        try:
            yield
        finally:
            self._withheld = before

    def waiting_pods(self) -> Sequence[WaitingPod]:
        """Return every pod that waits at Permit, the longest waiting first."""
        return self._waiting.undecided_pods()

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        """Return a pod if it waits at Permit and has not been decided about."""
        return self._waiting.find(uid)

    def allow(self, uid: str, plugin: str) -> bool:
        """Allow a waiting pod in the name of a plugin."""
        return not self._withheld and self._waiting.allow(uid, plugin)

    def reject(self, uid: str, plugin: str, message: str) -> bool:
        """Reject a waiting pod in the name of a plugin."""
        return not self._withheld and self._waiting.reject(uid, plugin, message)

    def activate(self, pods: Iterable[Pod]) -> None:
        """Move pods to activeQ, so that they are tried at once."""
        if not self._withheld:
            self._activations.add_pods(pods)

    def emit(self, pod: Pod, *, kind: EventType, reason: str, action: str, note: str) -> None:
        """Emit an Event about a pod, in the name of its profile."""
        if self._api is not None and not self._withheld and self._api.ready():
            self._api.record(
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
        """Start a write to the API in a task that no caller waits for."""
        if self._api is not None and not self._withheld and self._api.ready():
            self._api.spawn(_contained(what, work), name=what)


async def _contained(what: str, work: Callable[[], Awaitable[None]]) -> None:
    """Run the work; the scheduler goes on if the work fails."""
    try:
        await work()
    except MoorageError as problem:
        _log.warning("%s failed: %s", what, problem)
    except Exception:
        _log.exception("%s broke", what)
