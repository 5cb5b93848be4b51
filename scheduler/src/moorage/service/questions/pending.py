"""The queues that pods wait in, by their conditions: for a state that is only watched.

Another scheduler decides there, and nothing is known of its queue but what it writes.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import msgspec

from moorage.api.pod import Pod
from moorage.api.reasons.codes import code_of_message
from moorage.base.clock import rfc3339_micro
from moorage.service.core import Core
from moorage.service.questions.answers import Queue, QueueAnswer, QueuedPod, QueueSizes
from moorage.service.questions.groups import incomplete_groups, with_reason_of_group

_GATED: Final = "SchedulingGated"


def pending_answer(core: Core, *, now_ns: int, limit: int) -> QueueAnswer:
    """Return where pods wait for another scheduler.

    A pod with a scheduling gate is gated. A pod that a scheduler rejected is unschedulable, with
    the scheduler's message. Every other pod without a node is active.

    Parameters
    ----------
    core
        The state; it is not changed.
    now_ns
        Wall-clock time, nanoseconds.
    limit
        Most pods of each place.
    """
    sizes: Counter[Queue] = Counter()
    pods = []
    for pod in core.store.all_pods():
        if pod.spec.node_name or pod.metadata.deletion_timestamp:
            continue
        told = _entry_of(core, pod)
        sizes[told.queue] += 1
        if sizes[told.queue] <= limit:
            pods.append(told)
    groups = incomplete_groups(core)
    return QueueAnswer(
        time=rfc3339_micro(now_ns),
        scheduling=False,
        sizes=QueueSizes(
            active=sizes["active"],
            in_flight=0,
            backoff=0,
            unschedulable=sizes["unschedulable"],
            gated=sizes["gated"],
            permit=0,
            binding=0,
        ),
        pods=tuple(with_reason_of_group(pods, groups)),
        groups=groups,
    )


def _entry_of(core: Core, pod: Pod) -> QueuedPod:
    queue, message, since = _place(pod)
    group = core.snapshot.groups.key_of(pod)
    return msgspec.structs.replace(
        entry_names(queue, pod),
        since=since,
        message=message,
        reason=code_of_message(message),
        node=pod.status.nominated_node_name,
        group="" if group is None else group.full_name,
    )


def entry_names(queue: Queue, pod: Pod) -> QueuedPod:
    """Return the entry of a pod, with its names only."""
    return QueuedPod(
        queue=queue,
        namespace=pod.metadata.namespace,
        name=pod.metadata.name,
        uid=pod.uid,
        scheduler_name=pod.spec.scheduler_name,
        priority=pod.priority,
        owner=pod.metadata.owner_title,
    )


def _place(pod: Pod) -> tuple[Queue, str, str]:
    """Return where a pod waits, why, and since when."""
    failure = pod.status.scheduling_failure
    if failure is None:
        return "active", "", pod.metadata.creation_timestamp or ""
    queue: Queue = "gated" if failure.reason == _GATED else "unschedulable"
    return queue, failure.message, failure.last_transition_time or ""
