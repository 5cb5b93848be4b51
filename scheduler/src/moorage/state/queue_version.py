"""The queue as a given Kubernetes version behaves: the choices that belong together.

`moorage.state.queue` is written once, for all versions.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from moorage.base.clock import NS_PER_SECOND
from moorage.state.backoff import BackoffTimes
from moorage.state.backoff_times import AttemptBackoff, FailureBackoff
from moorage.state.contracts import QueueSettings
from moorage.state.hints import HintIndex
from moorage.state.wakeups import Wakeups
from moorage.state.wakeups_v1_20 import NamespaceLabels, WakeupsV120


class QueueVersion(msgspec.Struct, frozen=True):
    """The parts of a queue in which Kubernetes versions differ.

    Parameters
    ----------
    settings
        Times and switches of that version; the backoff times come from the configuration.
    backoff_times
        Builds the object that computes how long a failed pod backs off.
    wakeups
        Builds the object that tells which pods an event wakes, from the plugins' hints.
    """

    settings: QueueSettings
    backoff_times: Callable[[QueueSettings], BackoffTimes]
    wakeups: Callable[[HintIndex], Wakeups]


V1_36 = QueueVersion(
    settings=QueueSettings(), backoff_times=FailureBackoff, wakeups=lambda hints: hints
)
"""Requeue hints, events kept for pods in flight, backoff in windows of a second."""


def v1_20(namespace_labels: NamespaceLabels) -> QueueVersion:
    """Return the queue of v1.20: any event wakes all pods, and a pod waits a minute at most.

    Parameters
    ----------
    namespace_labels
        Returns the labels of a namespace, for affinity terms that choose namespaces by label.
    """
    return QueueVersion(
        settings=QueueSettings(unschedulable_max_ns=60 * NS_PER_SECOND, pop_from_backoff=False),
        backoff_times=AttemptBackoff,
        wakeups=lambda _hints: WakeupsV120(namespace_labels),
    )
