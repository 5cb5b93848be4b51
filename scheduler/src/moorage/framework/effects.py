"""Effects: acts that a `Handle` offers a plugin, besides the status it answers with.

A plugin sees the pods that wait at Permit, and may allow or reject them. It may activate pods, and
may emit Events. A plugin never holds the queue, the cache or a task. Every effect is noted at once
and carried out by ``service``; no effect waits, so every effect may be used at any extension point.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/interface.go`` (WaitingPod, Activate).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, Protocol

import msgspec

from moorage.api.pod import Pod

EventType = Literal["Normal", "Warning"]


class WaitingPod(msgspec.Struct, frozen=True):
    """A pod held at Permit, as it is at this moment.

    Parameters
    ----------
    pod
        The pod as it was when its attempt began.
    node_name
        The node it is assumed on.
    pending
        Names of the plugins that have not allowed it yet, in the order they asked to wait; never
        empty.
    """

    pod: Pod
    node_name: str
    pending: tuple[str, ...]


class PluginEffects(Protocol):
    """The effects, as a plugin's `Handle` offers them. All profiles share the waiting pods."""

    def waiting_pods(self) -> Sequence[WaitingPod]:
        """Return every pod that waits at Permit, the longest waiting first.

        The cost grows with their number: with a known uid, use `waiting_pod`.
        """
        ...

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        """Return a pod if it waits at Permit and has not been decided about."""
        ...

    def allow(self, uid: str, plugin: str) -> bool:
        """Let a waiting pod go on behalf of a plugin.

        Parameters
        ----------
        uid
            The pod.
        plugin
            The plugin that no longer holds the pod; after the last such plugin the pod goes on.

        Returns
        -------
        bool
            Whether the pod was waiting for that plugin.
        """
        ...

    def reject(self, uid: str, plugin: str, message: str) -> bool:
        """Turn a waiting pod away: it leaves its node and waits for an event that may help.

        Parameters
        ----------
        uid
            The pod.
        plugin
            The rejecting plugin: its registered events wake the pod.
        message
            The reason, for the pod's Event and condition.

        Returns
        -------
        bool
            Whether the pod was still waiting for a decision.
        """
        ...

    def activate(self, pods: Iterable[Pod]) -> None:
        """Have pods tried again at once, whatever their backoff; unknown ones are ignored.

        To do so only if the present attempt succeeds, put them into
        `CycleState.pods_to_activate`.
        """
        ...

    def emit(self, pod: Pod, *, kind: EventType, reason: str, action: str, note: str) -> None:
        """Emit an Event about a pod.

        Parameters
        ----------
        pod
            The object of the Event.
        kind
            ``type`` of the Event.
        reason, action
            The reason, and the action taken; UpperCamelCase words.
        note
            Text for people; cut at 1024 bytes.
        """
        ...

    def in_background(self, what: str, work: Callable[[], Awaitable[None]]) -> None:
        """Start a write to the API that no pod waits for.

        Parameters
        ----------
        what
            A description for the log.
        work
            Begins the write. Its exceptions are logged, so `work` must do its own retries.
        """
        ...

    def withheld(self) -> AbstractContextManager[None]:
        """Carry out no effect while the context is open; the engine opens it for questions."""
        ...


class NoEffects:
    """`PluginEffects` without waiting pods and without any effect.

    Conformance, what-if and plugins' own tests only decide.
    """

    def waiting_pods(self) -> Sequence[WaitingPod]:
        """Return no pods."""
        return ()

    def waiting_pod(self, uid: str) -> WaitingPod | None:
        """Return None: the pod does not wait."""
        del uid
        return None

    def allow(self, uid: str, plugin: str) -> bool:
        """Return False: the pod did not wait."""
        del uid, plugin
        return False

    def reject(self, uid: str, plugin: str, message: str) -> bool:
        """Return False: the pod did not wait."""
        del uid, plugin, message
        return False

    def activate(self, pods: Iterable[Pod]) -> None:
        """Activate no pod."""

    def emit(self, pod: Pod, *, kind: EventType, reason: str, action: str, note: str) -> None:
        """Emit no Event."""

    def in_background(self, what: str, work: Callable[[], Awaitable[None]]) -> None:
        """Begin no work."""

    def withheld(self) -> AbstractContextManager[None]:
        """Return a context in which nothing is different."""
        return nullcontext()
