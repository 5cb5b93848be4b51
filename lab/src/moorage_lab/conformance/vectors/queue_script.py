"""Runs a vector of upstream's tests of the scheduling queue: steps, then where every pod is.

The mode "queue" of the conformance runner. The real queue of moorage is driven by a manual clock.
Plugins are made up, as in upstream's tests: a gate lets in pods that have one of its labels, and a
hint has one answer. The order is that of PrioritySort.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import msgspec

from moorage.api.changes import (
    FORCE_ACTIVATE,
    UNSCHEDULABLE_TIMEOUT,
    Action,
    ClusterEvent,
    action_name,
)
from moorage.api.pod import Pod
from moorage.base.clock import NS_PER_SECOND, ManualClock
from moorage.observe.event_names import event_names
from moorage.state.contracts import (
    GateResult,
    Hint,
    NullObserver,
    QueueSettings,
    RegisteredHint,
)
from moorage.state.nominations import NominatingInfo, Nominator
from moorage.state.queue import SchedulingQueue
from moorage.state.queued_pod import QueuedPod
from moorage_lab.conformance.recordings import Json, QueueScript, Scenario

_ACTIONS: Final = {action_name(each): each for each in (*Action, Action.UPDATE, Action.ALL)}
_WILDCARDS: Final = {event.label: event for event in (FORCE_ACTIVATE, UNSCHEDULABLE_TIMEOUT)}
_PROFILE: Final = ""  # the pods of upstream's tests name none
_SUB_QUEUES: Final = ("active", "backoff", "unschedulable", "gated")


def run_queue(scenario: Scenario) -> Json:
    """Return what the vector of a scenario looks at, after all steps."""
    script, vector = scenario.queue, scenario.vector
    assert script is not None, "a vector of mode queue has a script"
    assert vector is not None, "a script is that of a vector"
    play = _Play(script, event_names(scenario.emulated_version))
    for operation, *arguments in script.steps:
        play.step(operation, arguments)
    play.queue.validate()
    return {point: play.answer(point) for point in vector.points}


def event_of(name: str) -> ClusterEvent:
    """Return the cluster event of a name such as ``Node/UpdateNodeLabel``."""
    if name in _WILDCARDS:
        return _WILDCARDS[name]
    resource, _, actions = name.rpartition("/")
    action = 0
    for each in actions.split("|"):
        action |= _ACTIONS[each]
    return ClusterEvent(resource, action)


class _Observer(NullObserver):
    """Counts pods by the sub-queue that they enter, and the questions to hints."""

    def __init__(self) -> None:
        self.incoming_pods: Counter[tuple[str, str]] = Counter()
        self.rejected_pods: Counter[str] = Counter()
        self.hints_asked = 0

    def incoming(self, queue: str, event: str, pod: Pod) -> None:
        del pod
        self.incoming_pods[event, queue] += 1

    def unschedulable_pods(self, plugin: str, profile: str, delta: int) -> None:
        self.rejected_pods[plugin] += delta

    def hint_asked(
        self, plugin: str, event: str, answer: str, *, since_ns: int, pods: int = 1
    ) -> None:
        self.hints_asked += pods


class _Play:
    """The queue under test, the pods in flight, and what was popped."""

    def __init__(self, script: QueueScript, event_name: Callable[[str], str]) -> None:
        self._event_name = event_name
        self._pods = script.pods
        self._gates = {gate.plugin: list(gate.labels) for gate in script.gates}
        self._clock = ManualClock()
        self._start_ns = self._clock.now_ns()
        self._in_flight: dict[str, QueuedPod] = {}
        self._popped: list[QueuedPod] = []
        self._observer = _Observer()
        self._bound: set[str] = set()
        nominator = Nominator(self._newest)
        self._api = {(pod.namespace, pod.name): pod for pod in script.pods.values()}
        self.queue = SchedulingQueue(
            clock=self._clock,
            sort_key=_by_priority,
            pre_enqueue={
                _PROFILE: [(gate.plugin, partial(self._gate, gate.plugin)) for gate in script.gates]
            },
            hints={_PROFILE: [_registered(each) for each in script.hints]},
            nominator=nominator,
            settings=_settings(script.settings),
            observer=self._observer,
        )
        self._steps: Mapping[str, Callable[..., Any]] = {
            "add": self._add,
            "pop": self._pop,
            "fail": self._fail,
            "done": lambda key: self.queue.end_in_flight(self._pods[key].uid),
            "update": self._update,
            "delete": lambda key: self.queue.delete(self._pods[key]),
            "forget": lambda key: self._api.pop((self._pods[key].namespace, self._pods[key].name)),
            "activate": lambda key: self.queue.activate([self._pods[key]]),
            "event": self._event,
            "gate": self._gates.__setitem__,
            "nominate": self._nominate,
            "wait": lambda seconds: self._clock.advance_ns(round(seconds * NS_PER_SECOND)),
            "flushBackoff": self.queue.flush_backoff,
            "flushUnschedulable": self.queue.flush_unschedulable_leftover,
        }

    def step(self, operation: str, arguments: list[Any]) -> None:
        """Do one step of the script."""
        self._steps[operation](*arguments)

    def answer(self, point: str) -> Any:
        """Return one thing that the test looks at."""
        if point in _SUB_QUEUES:
            return sorted(each.pod.name for each in getattr(self.queue.pending(), point))
        return self._answers()[point]()

    def _answers(self) -> Mapping[str, Callable[[], Any]]:
        return {
            "inFlight": lambda: sorted(self.queue.pending().in_flight),
            "popped": lambda: [each.pod.name for each in self._popped],
            "attempts": lambda: [each.attempts for each in self._popped],
            "firstQueued": lambda: [
                self._seconds(each.initial_attempt_ns) for each in self._popped
            ],
            "rejectors": lambda: sorted(self._popped[-1].rejectors),
            "flushed": lambda: [each.was_flushed for each in self._popped],
            "nominated": self._nominated,
            "incoming": self._incoming,
            "rejected": lambda: {
                plugin: count for plugin, count in self._observer.rejected_pods.items() if count
            },
            "hintsAsked": lambda: self._observer.hints_asked,
            "counts": self._counts,
            "summary": lambda: self.queue.pending().summary_text,
            "backoffSeconds": self._backoff_seconds,
        }

    # -- the steps ---------------------------------------------------------------------------------

    def _add(self, *keys: str) -> None:
        for key in keys:
            self.queue.add(self._pods[key])

    def _pop(self, count: int = 1) -> None:
        for _ in range(count):
            queued = self.queue.pop()
            if queued is not None:
                # A copy, as the queue goes on with the pod.
                self._popped.append(msgspec.structs.replace(queued))
                self._in_flight[queued.uid] = queued

    def _fail(self, key: str, rejectors: list[str], pending: list[str] | None = None) -> None:
        """Give a pod in flight back: rejected, or with an error where no plugin is named."""
        queued = self._in_flight.pop(self._pods[key].uid)
        queued.rejected_by(rejectors, pending or ())
        self.queue.add_unschedulable_if_not_present(queued)

    def _update(self, old: str, new: str) -> None:
        pod = self._pods[new]
        self._api[pod.namespace, pod.name] = pod
        self.queue.update(self._pods[old], pod)

    def _event(self, name: str, least: int | None = None, factor: int = 1) -> None:
        """Report an event, where ``least`` is set to pods of some priorities only.

        These are multiples of ``factor`` and not below ``least``: the check before all hints.
        """

        def precheck(pod: Pod) -> bool:
            priority = pod.spec.priority or 0
            return priority >= (least or 0) and priority % factor == 0

        self.queue.move_all(
            event_of(name), None, None, precheck=None if least is None else precheck
        )

    def _nominate(self, key: str, node_name: str | None = None) -> None:
        info = None if node_name is None else NominatingInfo(node_name)
        self.queue.nominate(self._pods[key], info)

    # -- made up -----------------------------------------------------------------------------------

    def _gate(self, plugin: str, pod: Pod) -> GateResult | None:
        labels = self._gates[plugin]
        if any(label in pod.metadata.labels for label in labels):
            return None
        return ("UnschedulableAndUnresolvable", ("pod name not in allowlists",))

    def _newest(self, namespace: str, name: str) -> Pod | None:
        return self._api.get((namespace, name))

    # -- the answers -------------------------------------------------------------------------------

    def _seconds(self, time_ns: int | None) -> float | None:
        return None if time_ns is None else (time_ns - self._start_ns) / NS_PER_SECOND

    def _nominated(self) -> Json:
        nodes: dict[str, list[str]] = {}
        names = {pod.uid: pod.name for pod in self._pods.values()}
        for uid, node_name in self.queue.nominator:
            nodes.setdefault(node_name, []).append(names[uid])
        return nodes

    def _incoming(self) -> Json:
        pods = self._observer.incoming_pods.items()
        return {f"{self._event_name(event)} {queue}": count for (event, queue), count in pods}

    def _counts(self) -> Json:
        counts = self.queue.counts()
        return {name: getattr(counts, name) for name in _SUB_QUEUES}

    def _backoff_seconds(self) -> list[float]:
        """Return the backoff of each pod, as a number of windows where it ends with one."""
        window_ns = NS_PER_SECOND if self.queue.settings.pop_from_backoff else 0
        times_ns = (
            each.backoff_expiration_ns - each.since_ns for each in self.queue.pending().backoff
        )
        return sorted(
            (time_ns // window_ns + 1 if window_ns else time_ns / NS_PER_SECOND)
            for time_ns in times_ns
        )


def _by_priority(queued: QueuedPod) -> tuple[int, int]:
    return (-queued.priority, queued.timestamp_ns)


def _registered(hint: Mapping[str, str]) -> RegisteredHint:
    answer = hint["answer"]
    return RegisteredHint(
        hint["plugin"], event_of(hint["event"]), lambda waiting, old, new: _said(answer)
    )


def _said(answer: str) -> Hint:
    if answer == "Error":
        raise RuntimeError("unexpected error")
    return Hint.QUEUE if answer == "Queue" else Hint.SKIP


def _settings(settings: Mapping[str, Any]) -> QueueSettings:
    """Return settings with the times of a script, which are in seconds."""
    default = QueueSettings()
    seconds = {
        "backoff_initial_ns": settings.get("podInitialBackoffSeconds"),
        "backoff_max_ns": settings.get("podMaxBackoffSeconds"),
        "unschedulable_max_ns": settings.get("podMaxInUnschedulablePodsSeconds"),
    }
    changes: dict[str, Any] = {
        name: round(value * NS_PER_SECOND) for name, value in seconds.items() if value is not None
    }
    changes["pop_from_backoff"] = settings.get("popFromBackoff", default.pop_from_backoff)
    return msgspec.structs.replace(default, **changes)
