"""The scheduling queue of which Kubernetes version: the choices that belong together.

`moorage.state.queue` is written once, for all of them.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from moorage.base.clock import NS_PER_SECOND
from moorage.state.backoff import Pauses
from moorage.state.contracts import QueueSettings
from moorage.state.every_event import EveryEvent, NamespaceLabels
from moorage.state.hints import HintIndex
from moorage.state.pauses import AttemptPauses, FailurePauses
from moorage.state.wakeups import Wakeups


class QueueRules(msgspec.Struct, frozen=True):
    """What a queue does its own way.

    Parameters
    ----------
    settings
        The times and switches of that version; the lengths of pauses come from the configuration.
    pauses
        Makes what says how long a failed pod pauses.
    wakeups
        Makes what says which pods an event wakes, from the plugins' hints.
    """

    settings: QueueSettings
    pauses: Callable[[QueueSettings], Pauses]
    wakeups: Callable[[HintIndex], Wakeups]


V1_36 = QueueRules(settings=QueueSettings(), pauses=FailurePauses, wakeups=lambda hints: hints)
"""Requeue hints, events kept for pods in flight, backoff in windows of a second."""


def v1_20(namespace_labels: NamespaceLabels) -> QueueRules:
    """Return the rules of v1.20: any event wakes all, attempts count, a minute's wait is enough.

    Parameters
    ----------
    namespace_labels
        For pods that long for others of namespaces chosen by label.
    """
    return QueueRules(
        settings=QueueSettings(unschedulable_max_ns=60 * NS_PER_SECOND, pop_from_backoff=False),
        pauses=AttemptPauses,
        wakeups=lambda _hints: EveryEvent(namespace_labels),
    )
