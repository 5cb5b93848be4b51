"""How long the containers of a deleted pod go on: hooks, grace period and what the pod says.

``pod_life`` asks when a deletion is seen, and again when the grace period is shortened.
"""

from __future__ import annotations

from typing import Final

from moorage.api.pod import Container, Pod
from moorage.base.clock import NS_PER_SECOND, parse_rfc3339
from moorage.nodeagent.annotations import STOP_SECONDS, number

_STOP_SECONDS: Final = 1.0
# kubernetes v1.36 pkg/kubelet/kuberuntime/kuberuntime_container.go, minimumGracePeriodInSeconds.
_WINDOW_SECONDS: Final = 2.0
_GRACE_SECONDS_MIN: Final = 1


def stopped_ns(pod: Pod) -> int:
    """Return when the containers of a pod that is being deleted have ended.

    Parameters
    ----------
    pod
        A pod with a deletion timestamp. The timestamp is the end of the grace period, so the
        deletion was asked for that much earlier.

    Returns
    -------
    int
        Wall-clock time, nanoseconds.
    """
    grace = pod.metadata.deletion_grace_period_seconds or 0
    asked_ns = parse_rfc3339(pod.metadata.deletion_timestamp or "") - grace * NS_PER_SECOND
    return asked_ns + round(stopping_seconds(pod, grace) * NS_PER_SECOND)


def stopping_seconds(pod: Pod, grace: int) -> float:
    """Return how long the containers go on after the deletion was asked for.

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
    told = number(pod, STOP_SECONDS)
    needed = _STOP_SECONDS if told is None else told
    return max(_seconds(container, grace, needed) for container in _stopping(pod))


def _stopping(pod: Pod) -> list[Container]:
    sidecars = [each for each in pod.spec.init_containers if each.is_restartable_init]
    # Without any containers, as no server would store a pod, nothing but the window counts.
    return [*pod.spec.containers, *sidecars] or [Container()]


def _seconds(container: Container, grace: int, needed: float) -> float:
    hook = container.lifecycle.pre_stop if container.lifecycle else None
    slept = min(hook.sleep.seconds, grace) if hook and hook.sleep else 0
    return slept + min(needed, max(_WINDOW_SECONDS, grace - slept))
