"""PreEnqueue: the plugins asked before a pod enters activeQ or backoffQ; a rejection gates it."""

from __future__ import annotations

import logging

from moorage.state.contracts import (
    GateResult,
    NullObserver,
    PreEnqueueMap,
    QueueObserver,
)
from moorage.state.hints import HintIndex
from moorage.state.queued_pod import QueuedPod

_log = logging.getLogger(__name__)

_ERROR = "Error"
"""Text of the status code of a broken plugin."""


class PreEnqueueGates:
    """The PreEnqueue plugins of all profiles.

    Parameters
    ----------
    pre_enqueue
        Profile name to its PreEnqueue plugins, in order.
    hints
        Tells which events a gating plugin registered.
    observer
        Keeps the durations of the plugins.

    Notes
    -----
    Kubernetes v1.36 ``pkg/scheduler/backend/queue/scheduling_queue.go`` runPreEnqueuePlugins. There
    the plugins run in no fixed order; here in the profile's.
    """

    def __init__(
        self, pre_enqueue: PreEnqueueMap, hints: HintIndex, observer: QueueObserver | None = None
    ) -> None:
        self._observer = observer if observer is not None else NullObserver()
        self._plugins = {profile: tuple(plugins) for profile, plugins in pre_enqueue.items()}
        self._hints = hints

    def replace(self, pre_enqueue: PreEnqueueMap) -> None:
        """Take over the plugins of another configuration."""
        self._plugins = {profile: tuple(plugins) for profile, plugins in pre_enqueue.items()}

    def run(self, queued: QueuedPod) -> None:
        """Ask the plugins of the pod's profile and set or clear its gate.

        The plugin that gates the pod now is asked first, because that plugin most likely still
        gates the pod. A plugin that keeps the pod out joins its rejectors, whatever the code of the
        answer. When all plugins let the pod in, its rejectors stay, because they tell why the pod
        waited.
        """
        pod = queued.pod
        plugins = self._plugins.get(pod.spec.scheduler_name)
        if not plugins:
            _open(queued)
            return
        if queued.gating_plugin:
            plugins = tuple(sorted(plugins, key=lambda plugin: plugin[0] != queued.gating_plugin))
        began_ns = self._observer.observer_now_ns()
        for name, function in plugins:
            try:
                answer = function(pod)
            except Exception as error:
                answer = _broken(name, error, queued)
            if answer is not None:
                self._close(queued, name, answer)
                break
        else:
            _open(queued)
        self._observer.pre_enqueue_asked(pod.spec.scheduler_name, since_ns=began_ns)

    def _close(self, queued: QueuedPod, plugin: str, answer: GateResult) -> None:
        if answer[0] == _ERROR:
            _log.error(
                "Unexpected error running PreEnqueue plugin %s on pod %s/%s: %s",
                plugin,
                *queued.key,
                ", ".join(answer[1]),
            )
        queued.unschedulable_plugins |= {plugin}
        queued.gating_plugin = plugin
        queued.gating_result = answer
        queued.gating_events = self._hints.events_of(plugin)


def _open(queued: QueuedPod) -> None:
    if queued.gating_plugin:
        queued.gating_plugin = ""
        queued.gating_result = None
        queued.gating_events = ()


def _broken(name: str, error: Exception, queued: QueuedPod) -> GateResult:
    """Return the answer that stands for an exception of a plugin."""
    _log.error("PreEnqueue plugin %s broke on pod %s/%s", name, *queued.key, exc_info=error)
    return (_ERROR, (f"{type(error).__name__}: {error}",))
