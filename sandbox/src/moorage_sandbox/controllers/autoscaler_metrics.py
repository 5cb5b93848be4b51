"""Computes the number of replicas from the measured use of a resource; pure.

`autoscaler` reads the measurements and the pods; `propose` is the formula between them.

Notes
-----
kubernetes v1.36 pkg/controller/podautoscaler/replica_calculator.go, with the defaults of
kube-controller-manager.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from moorage.api.pod import Pod
from moorage.api.quantity import NANO, parse_quantity
from moorage.base.clock import NS_PER_SECOND, parse_rfc3339

Milli = Mapping[str, int]
"""Pod name to thousandths of a core or of a byte."""

TOLERANCE: Final = 0.1
_CPU_INITIALIZATION_NS: Final = 300 * NS_PER_SECOND
_INITIAL_READINESS_NS: Final = 30 * NS_PER_SECOND


class MetricError(Exception):
    """A metric gives no number of replicas; the message says why."""


class Target(msgspec.Struct, frozen=True):
    """The target of a metric.

    Parameters
    ----------
    resource
        ``cpu`` or ``memory``.
    container
        The only container that counts; "" for all.
    percent
        Wanted use as a share of the requests; None where ``milli`` is given.
    milli
        Wanted use of each pod, thousandths.
    """

    resource: str
    container: str = ""
    percent: int | None = None
    milli: int = 0


class Proposal(msgspec.Struct, frozen=True):
    """The result of a metric.

    Parameters
    ----------
    replicas
        The number of replicas.
    average_milli
        Present use of each pod, thousandths.
    percent
        Present use as a share of the requests; None for a target by value.
    """

    replicas: int
    average_milli: int
    percent: int | None


class _Groups:
    """Pods, grouped by how their measurements count."""

    def __init__(self) -> None:
        self.ready = 0
        self.unready: list[str] = []
        self.missing: list[str] = []
        self.ignored: list[str] = []


def propose(
    target: Target, current: int, pods: Sequence[Pod], used: Milli, *, now_ns: int
) -> Proposal:
    """Return the number of replicas that the use of a resource calls for.

    Parameters
    ----------
    current
        The present number of replicas.
    pods
        The pods of the scaled workload.
    used
        Measured use of each pod by name; pods without a measurement are absent.
    now_ns
        Wall-clock time.

    Raises
    ------
    MetricError
        There are no pods, no measurements, or a request is missing.
    """
    if not pods:
        raise MetricError("no pods returned by selector while calculating replica count")
    groups = _grouped(pods, used, target.resource, now_ns)
    dropped = {*groups.unready, *groups.ignored}
    counted = {name: amount for name, amount in used.items() if name not in dropped}
    requests = _requests(pods, target) if target.percent is not None else {}
    _, average, percent = _ratio(target, counted, requests)
    replicas = _replicas(target, current, groups, counted, requests)
    return Proposal(replicas, average, percent)


def _replicas(
    target: Target,
    current: int,
    groups: _Groups,
    usage: dict[str, int],
    requests: Milli,
) -> int:
    ratio, _, _ = _ratio(target, usage, requests)
    unready = groups.unready if ratio > 1 else []
    if not unready and not groups.missing:
        return current if _near(ratio) else math.ceil(ratio * groups.ready)
    # Pods without measurements count against the change. They count as idle when pods would be
    # added, and as fully used when pods would be removed.
    for name in groups.missing:
        if ratio < 1:
            usage[name] = _full_use(target, requests, name)
        elif ratio > 1:
            usage[name] = 0
    for name in unready:
        usage[name] = 0
    anew, _, _ = _ratio(target, usage, requests)
    if _near(anew) or (ratio < 1 < anew) or (anew < 1 < ratio):
        return current
    replicas = math.ceil(anew * len(usage))
    turned = (anew < 1 and replicas > current) or (anew > 1 and replicas < current)
    return current if turned else replicas


def _near(ratio: float) -> bool:
    return abs(1 - ratio) <= TOLERANCE


def _full_use(target: Target, requests: Milli, name: str) -> int:
    if target.percent is None:
        return target.milli
    return requests.get(name, 0) * max(100, target.percent) // 100


def _ratio(target: Target, used: Milli, requests: Milli) -> tuple[float, int, int | None]:
    """Return use by target, the average use, and the use as a percentage of the requests."""
    if target.percent is None:
        if not used:
            raise MetricError("no metrics returned matched known pods")
        average = sum(used.values()) // len(used)
        return average / target.milli, average, None
    known = {name: amount for name, amount in used.items() if name in requests}
    asked = sum(requests[name] for name in known)
    if not asked:
        raise MetricError("no metrics returned matched known pods")
    percent = sum(known.values()) * 100 // asked
    return percent / target.percent, sum(known.values()) // len(known), percent


def _grouped(pods: Sequence[Pod], used: Milli, resource: str, now_ns: int) -> _Groups:
    groups = _Groups()
    for pod in pods:
        if pod.metadata.deletion_timestamp is not None or pod.status.phase == "Failed":
            groups.ignored.append(pod.name)
        elif pod.status.phase == "Pending":
            groups.unready.append(pod.name)
        elif pod.name not in used:
            groups.missing.append(pod.name)
        elif resource == "cpu" and _is_unready(pod, now_ns):
            groups.unready.append(pod.name)
        else:
            groups.ready += 1
    return groups


def _is_unready(pod: Pod, now_ns: int) -> bool:
    """Whether the measured cpu of a pod does not count yet, because the pod is starting."""
    ready = next((each for each in pod.status.conditions if each.type == "Ready"), None)
    if ready is None or pod.status.start_time is None:
        return True
    started_ns = parse_rfc3339(pod.status.start_time)
    if ready.status != "False":
        return False
    if now_ns < started_ns + _CPU_INITIALIZATION_NS:
        return True
    changed_ns = parse_rfc3339(ready.last_transition_time or pod.status.start_time)
    return started_ns + _INITIAL_READINESS_NS > changed_ns


def _requests(pods: Sequence[Pod], target: Target) -> dict[str, int]:
    """Return the request of each pod, thousandths."""
    requests: dict[str, int] = {}
    for pod in pods:
        total = 0
        for container in pod.spec.containers:
            if target.container not in ("", container.name):
                continue
            amount = container.resources.requests.get(target.resource)
            if amount is None:
                raise MetricError(
                    f"missing request for {target.resource} in container {container.name} of Pod "
                    f"{pod.name}"
                )
            total += parse_quantity(amount) * 1000 // NANO
        requests[pod.name] = total
    return requests
