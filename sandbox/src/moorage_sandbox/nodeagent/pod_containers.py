"""The containers of one pod, and the moments when each starts, ends and restarts; pure.

``pod_life`` calls `PodContainers.advance` when a moment is due, ``kubelet_status`` writes the
outcome. Init containers run one after another; sidecars run next to the containers that follow
them. Regular containers start when all init containers are done and all sidecars are started. An
ephemeral container is added to a pod that runs: it starts at once, runs once, and its command alone
says for how long.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal, TypeAlias

import msgspec

from moorage.api.pod import Container, Pod
from moorage.base.clock import NS_PER_SECOND
from moorage.nodeshapes.annotations import exit_code, ready_seconds, run_seconds, startup_seconds
from moorage.nodeshapes.commands import CommandRun, course_of
from moorage_sandbox.nodeagent.container_run import ContainerRun, restarts, taken_up

Phase: TypeAlias = Literal["Pending", "Running", "Succeeded", "Failed"]

# The exit code of a container that is told to stop: 128 and the number of SIGTERM.
STOPPED_CODE: Final = 143


class Seat(msgspec.Struct, frozen=True):
    """A container of the pod with its runs."""

    container: Container
    run: ContainerRun
    init: bool
    ephemeral: bool = False

    @property
    def is_sidecar(self) -> bool:
        """Whether this init container runs next to the regular ones."""
        return self.init and self.container.is_restartable_init

    @property
    def is_done(self) -> bool:
        """Whether this is an init container that needs no further run."""
        ended = self.run.ended
        return self.init and not self.is_sidecar and ended is not None and ended.exit_code == 0


class PodContainers:
    """The runs of all containers of one pod.

    Every method takes the newest version of the pod, because its annotations may change.
    """

    __slots__ = ("_ephemeral", "_inits", "_regular")

    def __init__(self, pod: Pod) -> None:
        self._inits = [ContainerRun() for _ in pod.spec.init_containers]
        self._regular = [ContainerRun() for _ in pod.spec.containers]
        self._ephemeral: dict[str, ContainerRun] | None = None  # until there is one

    def take_up(self, pod: Pod, since_ns: int) -> None:
        """Restore the runs of all containers from the status of the pod.

        Parameters
        ----------
        since_ns
            When the pod started; used for moments that the status does not give.
        """
        statuses = {
            each.name: each
            for each in (*pod.status.init_container_statuses, *pod.status.container_statuses)
        }
        for runs, containers in (
            (self._inits, pod.spec.init_containers),
            (self._regular, pod.spec.containers),
        ):
            for index, container in enumerate(containers):
                if container.name in statuses:
                    runs[index] = taken_up(statuses[container.name], since_ns)
        late = pod.status.ephemeral_container_statuses or ()
        self._ephemeral = {each.name: taken_up(each, since_ns) for each in late} or None

    def inits(self, pod: Pod) -> Iterator[Seat]:
        """Return the init containers in their order."""
        for container, run in zip(pod.spec.init_containers, self._inits, strict=False):
            yield Seat(container, run, init=True)

    def regular(self, pod: Pod) -> Iterator[Seat]:
        """Return the regular containers in their order."""
        for container, run in zip(pod.spec.containers, self._regular, strict=False):
            yield Seat(container, run, init=False)

    def ephemeral(self, pod: Pod) -> Iterator[Seat]:
        """Return the ephemeral containers in the order of their coming."""
        if not pod.spec.ephemeral_containers:
            return
        if self._ephemeral is None:
            self._ephemeral = {}
        for container in pod.spec.ephemeral_containers:
            run = self._ephemeral.setdefault(container.name, ContainerRun())
            yield Seat(container, run, init=False, ephemeral=True)

    def seats(self, pod: Pod) -> list[Seat]:
        """Return all containers, init containers first."""
        return [*self.inits(pod), *self.regular(pod), *self.ephemeral(pod)]

    # --- moving on --------------------------------------------------------------------------

    def advance(self, pod: Pod, now_ns: int) -> list[Seat]:
        """End the runs that are due, and start the containers that may start.

        Returns
        -------
        list of Seat
            The containers that crashed now and wait for their next run.
        """
        seats = self.seats(pod)
        for seat in seats:
            due_ns = _end_ns(pod, seat)
            if due_ns is not None and due_ns <= now_ns:
                _end(pod, seat, now_ns)
        self._start_containers(pod, now_ns)
        return [
            seat
            for seat in seats
            if waits_for_retry(pod, seat) and seat.run.ended and seat.run.ended.ended_ns == now_ns
        ]

    def stop(self, pod: Pod, now_ns: int, code: int = STOPPED_CODE) -> None:
        """End everything that runs."""
        for seat in self.seats(pod):
            if seat.run.is_running:
                seat.run.end_run(now_ns, code)

    def next_due_ns(self, pod: Pod, now_ns: int) -> int | None:
        """Return when `advance` is next due or a status changes; None for never."""
        moments = []
        for seat in self.seats(pod):
            if seat.ephemeral and seat.run.is_waiting:
                moments.append(now_ns)
            elif seat.run.is_running:
                changes = () if seat.ephemeral else _changes_ns(pod, seat)
                moments += [each for each in changes if each > now_ns]
                end_ns = _end_ns(pod, seat)
                moments += [] if end_ns is None else [end_ns]
            elif seat.run.ended is not None and waits_for_retry(pod, seat):
                moments.append(seat.run.retry_ns(seat.run.ended))
        return min(moments, default=None)

    def _start_containers(self, pod: Pod, now_ns: int) -> None:
        for seat in self.ephemeral(pod):
            _start(pod, seat, now_ns)
        for seat in self.inits(pod):
            if not self._pass_init(pod, seat, now_ns):
                return
        for seat in self.regular(pod):
            _start(pod, seat, now_ns)

    def _pass_init(self, pod: Pod, seat: Seat, now_ns: int) -> bool:
        """Advance an init container; return whether the next container may start."""
        while not seat.is_done:
            _start(pod, seat, now_ns)
            if seat.is_sidecar:
                return is_started(pod, seat, now_ns)
            due_ns = _end_ns(pod, seat)
            if due_ns is None or due_ns > now_ns:
                return False
            _end(pod, seat, now_ns)
        return True

    # --- asking -----------------------------------------------------------------------------

    def phase(self, pod: Pod) -> Phase:
        """Return the phase of the pod.

        Notes
        -----
        kubernetes v1.36 pkg/kubelet/kubelet_pods.go, getPhase.
        """
        for seat in self.inits(pod):
            if seat.is_done or (seat.is_sidecar and not seat.run.is_waiting):
                continue
            return "Failed" if seat.run.ended and not waits_for_retry(pod, seat) else "Pending"
        seats = list(self.regular(pod))
        if any(seat.run.is_waiting for seat in seats):
            return "Pending"
        if any(seat.run.is_running or waits_for_retry(pod, seat) for seat in seats):
            return "Running"
        return self.phase_when_stopped(pod)

    def phase_when_stopped(self, pod: Pod) -> Phase:
        """Return the phase of a pod whose containers have all ended and will not restart."""
        seats = self.regular(pod)
        succeeded = all(seat.run.ended and not seat.run.ended.exit_code for seat in seats)
        return "Succeeded" if succeeded else "Failed"


def is_started(pod: Pod, seat: Seat, now_ns: int) -> bool:
    """Whether a container runs and its startup is over."""
    delay = startup_seconds(pod, seat.container, init=seat.init)
    return seat.run.is_running and now_ns >= _after(seat.run, delay)


def is_ready(pod: Pod, seat: Seat, now_ns: int) -> bool:
    """Whether a container is ready: it runs after its delay, or is a finished init container.

    An ephemeral container is never ready, as with a kubelet.
    """
    if seat.ephemeral:
        return False
    delay = ready_seconds(pod, seat.container, init=seat.init)
    return seat.is_done or (seat.run.is_running and now_ns >= _after(seat.run, delay))


def waits_for_retry(pod: Pod, seat: Seat) -> bool:
    """Whether a container has ended and is to run again."""
    ended = seat.run.ended
    if ended is None or seat.is_done or seat.ephemeral:
        return False
    return restarts(pod, seat.container, ended.exit_code, init=seat.init)


def _start(pod: Pod, seat: Seat, now_ns: int) -> None:
    """Start a container that never ran, or whose next run is due."""
    run = seat.run
    if run.is_waiting or (
        run.ended and waits_for_retry(pod, seat) and run.retry_ns(run.ended) <= now_ns
    ):
        run.start_run(now_ns)


def _end(pod: Pod, seat: Seat, now_ns: int) -> None:
    if seat.ephemeral:
        seat.run.end_run(now_ns, (course_of(seat.container) or CommandRun()).exit_code)
        return
    seat.run.end_run(now_ns, exit_code(pod, seat.container, seat.run.restarts, init=seat.init))


def _end_ns(pod: Pod, seat: Seat) -> int | None:
    """Return when a running container ends by itself; None for never."""
    if not seat.run.is_running:
        return None
    if seat.ephemeral:
        seconds = (course_of(seat.container) or CommandRun(None)).seconds
        return None if seconds is None else _after(seat.run, seconds)
    seconds = run_seconds(pod, seat.container, seat.run.restarts, init=seat.init)
    return None if seconds is None else _after(seat.run, seconds)


def _changes_ns(pod: Pod, seat: Seat) -> tuple[int, int]:
    """Return when a running container is started and when it is ready."""
    started = startup_seconds(pod, seat.container, init=seat.init)
    ready = ready_seconds(pod, seat.container, init=seat.init)
    return _after(seat.run, started), _after(seat.run, ready)


def _after(run: ContainerRun, seconds: float) -> int:
    return run.started_ns + round(seconds * NS_PER_SECOND)
