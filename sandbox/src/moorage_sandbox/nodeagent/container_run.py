"""One container of a pod: its runs, how they ended, and when it may run again; pure.

    waiting -> running -> ended -> running -> ended ...

``pod_containers`` decides when each container starts; this module keeps the record of one
container.
"""

from __future__ import annotations

from typing import Final

import msgspec

from moorage.api.pod import Container, ContainerStateTerminated, ContainerStatus, Pod
from moorage.base.clock import NS_PER_SECOND, parse_rfc3339

# kubernetes v1.36 pkg/kubelet/kubelet.go, initialBackOffPeriod and MaxCrashLoopBackOff.
_BACKOFF_FIRST_NS: Final = 10 * NS_PER_SECOND
_BACKOFF_MAX_NS: Final = 300 * NS_PER_SECOND


class Ending(msgspec.Struct, frozen=True):
    """The end of a run; wall-clock nanoseconds."""

    exit_code: int
    started_ns: int
    ended_ns: int


class Backoff(msgspec.Struct, frozen=True):
    """The delay after the next end of a container, and when the delay was set; nanoseconds."""

    delay_ns: int
    set_ns: int

    def forgotten(self, ended_ns: int) -> bool:
        """Whether a run lasted so long that the next restart counts as the first one."""
        return ended_ns - self.set_ns > 2 * _BACKOFF_MAX_NS


class ContainerRun:
    """The runs of one container.

    Attributes
    ----------
    restarts
        The number of runs before the present run.
    started_ns
        Start of the present run, wall-clock nanoseconds; 0 before the first run.
    ended
        How the present run ended; None while it lasts.
    last
        How the run before ended.

    Notes
    -----
    kubernetes v1.36 pkg/kubelet/kuberuntime/kuberuntime_manager.go, doBackOff, and
    client-go/util/flowcontrol/backoff.go: the first restart comes at once, the next ones 10, 20,
    40, 80, 160 and then always 300 seconds after the end. When a run ends more than ten minutes
    after its start, the delays begin again. As with a kubelet, a restart of the agent forgets the
    delay.
    """

    __slots__ = ("_backoff", "ended", "last", "restarts", "started_ns")

    def __init__(self) -> None:
        self.restarts = 0
        self.started_ns = 0
        self.ended: Ending | None = None
        self.last: Ending | None = None
        self._backoff: Backoff | None = None

    @property
    def is_waiting(self) -> bool:
        """Whether the container never ran."""
        return not self.started_ns

    @property
    def is_running(self) -> bool:
        """Whether the container runs."""
        return self.started_ns != 0 and self.ended is None

    def start_run(self, now_ns: int) -> None:
        """Begin the first or the next run."""
        if self.ended is not None:
            delay_ns = self.backoff_ns(self.ended)
            delay_ns = min(2 * delay_ns, _BACKOFF_MAX_NS) if delay_ns else _BACKOFF_FIRST_NS
            self._backoff = Backoff(delay_ns, now_ns)
            self.restarts += 1
            self.last, self.ended = self.ended, None
        self.started_ns = now_ns

    def end_run(self, now_ns: int, exit_code: int) -> None:
        """End the present run."""
        assert self.is_running, "only a running container ends"
        self.ended = Ending(exit_code, self.started_ns, now_ns)

    def backoff_ns(self, ended: Ending) -> int:
        """Return how long the container waits after an end, nanoseconds; 0 for not at all."""
        backoff = self._backoff
        if backoff is None or backoff.forgotten(ended.ended_ns):
            return 0
        return backoff.delay_ns

    def retry_ns(self, ended: Ending) -> int:
        """Return when the container may start again, wall-clock nanoseconds."""
        return ended.ended_ns + self.backoff_ns(ended)


def taken_up(status: ContainerStatus, since_ns: int) -> ContainerRun:
    """Return the runs recorded in a container's status, for an agent that restarts.

    Parameters
    ----------
    since_ns
        Used for a moment that the status does not give, wall-clock nanoseconds.
    """
    run = ContainerRun()
    run.restarts = status.restart_count
    state, last = status.state, status.last_state
    run.last = _ending(last.terminated if last else None, since_ns)
    if state is not None and state.running is not None:
        run.started_ns = _moment(state.running.started_at, since_ns)
    elif state is not None and state.terminated is not None:
        run.ended = _ending(state.terminated, since_ns)
    elif run.last is not None:
        # The container waited for its next run.
        run.ended, run.last = run.last, None
    if run.ended is not None:
        run.started_ns = run.ended.started_ns
    return run


def restarts(pod: Pod, container: Container, exit_code: int, *, init: bool) -> bool:
    """Whether a container runs again after it has ended with a code.

    Notes
    -----
    kubernetes v1.36 pkg/api/v1/pod/util.go, ContainerShouldRestart: a rule of the container decides
    first, then its own policy, then the pod's. An init container that succeeded is done. A rule
    that restarts all containers restarts its own one only.
    """
    if container.restart_policy:
        for rule in container.restart_policy_rules:
            codes = rule.exit_codes
            if codes and (exit_code in codes.values) == (codes.operator == "In"):
                return True
    policy = container.restart_policy or pod.spec.restart_policy or "Always"
    if policy == "Always" and init and not container.is_restartable_init:
        policy = "OnFailure"
    return policy == "Always" or (policy == "OnFailure" and exit_code != 0)


def _ending(terminated: ContainerStateTerminated | None, since_ns: int) -> Ending | None:
    if terminated is None:
        return None
    started_ns = _moment(terminated.started_at, since_ns)
    ended_ns = _moment(terminated.finished_at, started_ns)
    return Ending(terminated.exit_code, started_ns, ended_ns)


def _moment(text: str | None, default_ns: int) -> int:
    return parse_rfc3339(text) if text else default_ns
