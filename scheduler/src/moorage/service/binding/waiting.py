"""Pods between their decision and their binding: held at Permit, or in PreBind.

`WaitingPods` is the map of pods that Permit plugins asked to wait, by uid, shared by all profiles:

- `BindingCycles.carry_out` puts a pod in (`hold`) in the same step in which it was assumed.
- Plugins look and decide through their handle's effects (`undecided_pods`, `find`, `allow`,
`reject`).
- A preemptor turns a waiting victim away (`preempt`), the watch a deleted pod (`remove`).
- The pod's binding task waits for the outcome (`outcome`), which is the first that came: Success
  when the last plugin allowed it, a rejection, or the timeout of one of the plugins.

An outcome is noted at once; the binding task sees it when the loop next runs that task. Until then
the pod counts on its node. A decided pod is no waiting pod any more.

`PreBinding` knows the pods that prepare for their binding: PreBind is running, or a write about the
pod has not ended. It can call that off for a preemptor; `CallOff` tries both.

Rules: scheduling spec, cycle sections 5.2 and 5.3 (kubernetes v1.36
``pkg/scheduler/framework/runtime/waiting_pods_map.go``).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

from moorage.api.pod import Pod
from moorage.api.schedules.durations import format_duration
from moorage.base.clock import NS_PER_SECOND
from moorage.framework.effects import WaitingPod
from moorage.framework.status import SUCCESS, Code, Status, unschedulable


class Outcome(Awaitable[Status], Protocol):
    """The decision about a waiting pod, once; a future of asyncio is one."""

    def done(self) -> bool:
        """Whether the pod was decided about."""
        ...

    def set_result(self, result: Status, /) -> None:
        """Note the decision."""
        ...


class Timer(Protocol):
    """A call at a later time."""

    def cancel(self) -> None:
        """Do not call."""
        ...

    def when(self) -> float:
        """Return the time of the call, in the seconds of the clock that made the timer."""
        ...


class _WaitingPod:
    """A waiting pod.

    Attributes
    ----------
    timers
        The plugins that have not answered, in the order they asked to wait, each with its timer.
    outcome
        The decision about the pod; not done while it waits.
    """

    __slots__ = ("node_name", "outcome", "pod", "timers")

    def __init__(self, pod: Pod, node_name: str, outcome: Outcome) -> None:
        self.pod = pod
        self.node_name = node_name
        self.timers: dict[str, Timer] = {}
        self.outcome = outcome

    def set_outcome(self, status: Status) -> bool:
        """Note an outcome; False when the pod has an outcome already."""
        for timer in self.timers.values():
            timer.cancel()
        self.timers.clear()
        if self.outcome.done():
            return False
        self.outcome.set_result(status)
        return True


class WaitingPods:
    """The pods held at Permit."""

    def __init__(self) -> None:
        # By uid, in the order of arrival; a decided pod stays until its task has taken note.
        self._waiting: dict[str, _WaitingPod] = {}
        # Turned away, and still assumed: by uid.
        self._leaving: dict[str, None] = {}

    def __len__(self) -> int:
        """Return the number of pods held, just decided pods included."""
        return len(self._waiting)

    def hold(self, pod: Pod, node_name: str, waits: Mapping[str, float]) -> None:
        """Hold a pod until all plugins allowed it, a plugin rejected it, or the first wait is over.

        Parameters
        ----------
        pod, node_name
            The pod, and the node it is assumed on.
        waits
            Longest wait in seconds by plugin; at least one.
        """
        assert pod.uid not in self._waiting, f"pod {pod.full_name} waits already"
        assert waits, f"pod {pod.full_name} has nobody to wait for"
        held = _WaitingPod(pod, node_name, self._undecided(pod.uid))
        self._waiting[pod.uid] = held
        for plugin, seconds in waits.items():
            time_out = partial(self._time_out, pod.uid, plugin, seconds)
            held.timers[plugin] = self._later(seconds, time_out)

    def _undecided(self, uid: str) -> Outcome:
        """Return a place for the decision about a pod."""
        del uid
        return asyncio.get_running_loop().create_future()

    def _later(self, seconds: float, call: Callable[[], None]) -> Timer:
        """Schedule a call after some time."""
        return asyncio.get_running_loop().call_later(seconds, call)

    def _seconds_now(self) -> float:
        """Return the time by which calls are made later."""
        return asyncio.get_running_loop().time()

    async def outcome(self, uid: str) -> Status:
        """Wait until a pod is decided about, and let go of it; Success for a pod that is not held.

        Returns
        -------
        Status
            Success, a rejection signed with its plugin, or Error.
        """
        held = self._waiting.get(uid)
        if held is None:
            return SUCCESS
        try:
            status = await held.outcome
        finally:
            self.release(uid)
        if status.ok or status.rejected:
            return status
        return Status(status.code, (f"waiting on permit for pod: {status.message}",), status.plugin)

    def release(self, uid: str) -> None:
        """Let go of a pod whose binding task does not wait for an outcome any more."""
        held = self._waiting.pop(uid, None)
        self._leaving.pop(uid, None)
        if held is not None:
            held.set_outcome(SUCCESS)

    @property
    def any_leaving(self) -> bool:
        """Whether a pod was turned away, and its task has not yet given back the room."""
        return bool(self._leaving)

    def holds_pod(self, uid: str) -> bool:
        """Whether a pod is held, decided about or not."""
        return uid in self._waiting

    # --- looking --------------------------------------------------------------------------------

    def undecided_pods(self) -> Sequence[WaitingPod]:
        """Return every pod that is still to be decided about, the longest waiting first."""
        return tuple(_shown(held) for held in self._waiting.values() if not held.outcome.done())

    def find(self, uid: str) -> WaitingPod | None:
        """Return a pod if it is still to be decided about."""
        held = self._waiting.get(uid)
        return None if held is None or held.outcome.done() else _shown(held)

    def seconds_left(self, uid: str) -> Mapping[str, float]:
        """Return how long each plugin still lets a pod wait, seconds; empty for any other pod."""
        held = self._waiting.get(uid)
        if held is None or held.outcome.done():
            return {}
        now = self._seconds_now()
        return {plugin: max(timer.when() - now, 0.0) for plugin, timer in held.timers.items()}

    # --- deciding -------------------------------------------------------------------------------

    def allow(self, uid: str, plugin: str) -> bool:
        """Wait no longer for one plugin; the last such plugin lets the pod go."""
        waiting = self._waiting.get(uid)
        if waiting is None or plugin not in waiting.timers:
            return False
        waiting.timers.pop(plugin).cancel()
        if not waiting.timers:
            waiting.set_outcome(SUCCESS)
        return True

    def reject(self, uid: str, plugin: str, message: str) -> bool:
        """Turn a pod away; False when the pod was decided about already."""
        return self._decide(uid, unschedulable(message).by(plugin))

    def preempt(self, uid: str, plugin: str, message: str) -> bool:
        """Turn a pod away to make room: it comes back after backoff, no event needed."""
        return self._decide(uid, Status(Code.ERROR, (message,), plugin))

    def remove(self, uid: str) -> bool:
        """Turn away a pod that is being deleted; its binding task takes everything back."""
        return self.reject(uid, "", "removed")

    def _decide(self, uid: str, status: Status) -> bool:
        held = self._waiting.get(uid)
        if held is None or not held.set_outcome(status):
            return False
        self._leaving[uid] = None
        return True

    def _time_out(self, uid: str, plugin: str, seconds: float) -> None:
        waited = format_duration(round(seconds * NS_PER_SECOND))
        self.reject(
            uid, plugin, f"rejected due to timeout after waiting {waited} at plugin {plugin}"
        )


def _shown(waiting: _WaitingPod) -> WaitingPod:
    return WaitingPod(waiting.pod, waiting.node_name, tuple(waiting.timers))


class PreBinding:
    """The pods that prepare for their binding: in PreBind, or waiting for writes of their own."""

    def __init__(self) -> None:
        self._work: dict[str, asyncio.Task[Status]] = {}
        # uid -> why its preparation was called off.
        self._reasons: dict[str, str] = {}

    def begin_pod(self, uid: str, work: asyncio.Task[Status]) -> None:
        """Note that a pod begins to prepare."""
        assert uid not in self._work, f"pod {uid} prepares already"
        self._work[uid] = work

    def end_pod(self, uid: str) -> str:
        """Note that a pod has prepared: what comes next cannot be called off.

        Returns
        -------
        str
            Why the preparation was called off; "" when it was not.
        """
        self._work.pop(uid, None)
        return self._reasons.pop(uid, "")

    def runs(self, uid: str) -> bool:
        """Whether a pod prepares."""
        return uid in self._work

    def cancel(self, uid: str, reason: str) -> bool:
        """Call a pod's preparation off; False when it does not prepare (any more)."""
        work = self._work.get(uid)
        if work is None:
            return False
        self._reasons.setdefault(uid, reason)
        work.cancel()
        return True


class CallOff:
    """Takes pods that are not bound yet off their nodes, for pods of higher priority.

    Parameters
    ----------
    waiting, pre_binding
        The pods held at Permit, and the pods that prepare for their binding.
    plugins
        Name of a profile -> name of its plugin that preempts.
    """

    def __init__(
        self, waiting: WaitingPods, pre_binding: PreBinding, plugins: Mapping[str, str]
    ) -> None:
        self._waiting = waiting
        self._pre_binding = pre_binding
        self._plugins = plugins

    def __call__(self, uid: str, profile: str) -> bool:
        """Take a pod off its node, for a preemptor of a profile.

        Returns
        -------
        bool
            False when the pod neither waits nor prepares: then only the API server can evict it.
        """
        plugin = self._plugins.get(profile, "")
        return self._waiting.preempt(uid, plugin, "preempted") or self._pre_binding.cancel(
            uid, f"preempted by {plugin}"
        )
