"""Computes how long the containers of a deleted pod run on, by hooks, grace period and annotation.

``pod_life`` asks when a deletion is seen, and again when the grace period is shortened.
"""

from __future__ import annotations

from typing import Final

import msgspec

from moorage.api.pod import Container, Pod
from moorage.base.clock import NS_PER_SECOND, parse_rfc3339
from moorage.nodeshapes.annotations import STOP_SECONDS, number

_STOP_SECONDS: Final = 1.0  # a guess: soon, and long enough to be seen
# kubernetes v1.36 pkg/kubelet/kuberuntime/kuberuntime_container.go, minimumGracePeriodInSeconds.
_WINDOW_SECONDS: Final = 2.0
_GRACE_SECONDS_MIN: Final = 1


class Stopping(msgspec.Struct, frozen=True):
    """The end of the containers of a deleted pod: its time, and whether one is killed.

    Parameters
    ----------
    ended_ns
        Wall-clock time, nanoseconds.
    killed
        The time was too short for the last container, so it is killed.
    """

    ended_ns: int
    killed: bool


def stopping_of(pod: Pod) -> Stopping:
    """Return how a pod that is being deleted stops.

    The deletion timestamp is the end of the grace period; the deletion was requested a grace period
    earlier.
    """
    grace = pod.metadata.deletion_grace_period_seconds or 0
    asked_ns = parse_rfc3339(pod.metadata.deletion_timestamp or "") - grace * NS_PER_SECOND
    seconds, killed = stopping_seconds(pod, grace)
    return Stopping(asked_ns + round(seconds * NS_PER_SECOND), killed)


def stopping_seconds(pod: Pod, grace: int) -> tuple[float, bool]:
    """Return how long containers go on after the deletion, and whether the last one is killed.

    Parameters
    ----------
    grace
        Grace period of the deletion, seconds.

    Notes
    -----
    kubernetes v1.36 pkg/kubelet/kuberuntime/kuberuntime_container.go, killContainer: the hook
    ``preStop`` runs first, at most as long as the grace period. Then the container is told to stop.
    It has the rest of the grace period, at least two seconds; then it is killed. A grace period
    of 0 counts as 1 (pod_workers.go, calculateEffectiveGracePeriod). All containers stop side by
    side.

    Differences: hooks that run a command or call a server take no time, for nothing runs that could
    answer. Sidecars do not wait for the other containers to end.
    """
    grace = max(_GRACE_SECONDS_MIN, grace)
    needed = number(pod, STOP_SECONDS, _STOP_SECONDS)
    return max(_seconds(container, grace, needed) for container in _stopping(pod))


def _stopping(pod: Pod) -> list[Container]:
    sidecars = [each for each in pod.spec.init_containers if each.is_restartable_init]
    # A pod without containers (no server stores one) has only the minimum window.
    return [*pod.spec.containers, *sidecars] or [Container()]


def _seconds(container: Container, grace: int, needed: float) -> tuple[float, bool]:
    hook = container.lifecycle.pre_stop if container.lifecycle else None
    slept = min(hook.sleep.seconds, grace) if hook and hook.sleep else 0
    window = max(_WINDOW_SECONDS, grace - slept)
    return slept + min(needed, window), needed > window
