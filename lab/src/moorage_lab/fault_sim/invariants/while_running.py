"""Rules that are looked at while the schedulers run, each by who sees it first.

`moorage_lab.fault_sim.probe` sees which pod is tried, `moorage_lab.fault_sim.turns` what is sent,
the cluster itself what is left behind. They note breaches by these names.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from moorage_lab.fault_sim.cluster import SimCluster
from moorage_lab.fault_sim.invariants.invariant import Invariant


def broken_rule_texts(name: str, cluster: SimCluster) -> Iterable[str]:
    """Return how a rule was seen not to hold while the schedulers ran."""
    return [text for seen, text in cluster.observations if seen == name]


def _rule(name: str, holds: str, incident: str) -> Invariant[SimCluster]:
    return Invariant(name, holds, incident, partial(broken_rule_texts, name))


WHILE_RUNNING: tuple[Invariant[SimCluster], ...] = (
    _rule(
        "in-turn",
        "What is written about a pod or a volume goes out one after another.",
        "two pods get one volume (kubernetes#65616), and an old status overwrites a new one",
    ),
    _rule(
        "order",
        "No pod is tried before a more important one.",
        "the comparison of a queue is turned round",
    ),
    _rule(
        "tries",
        "A pod is not tried again and again.",
        "a preemptor whose evictions failed was tried a thousand times a second",
    ),
    _rule(
        "backoff",
        "A pod waits longer after each attempt that failed, up to the longest backoff.",
        "a pod whose attempts met errors was tried again at once, and kept a core busy",
    ),
    _rule(
        "promise-kept",
        "An update that does not tell of a promise does not take it back.",
        "an update that came before the status withdrew a nomination (kubernetes#88440)",
    ),
    _rule(
        "extenders",
        "No pod is sent to a node that an extender has just refused to it.",
        "the answer of an extender is read and not heeded",
    ),
    _rule(
        "leaving-tried",
        "No pod that is being deleted is sent to a node.",
        "a pod that is being deleted is scheduled, and takes room until its node refuses it",
    ),
    _rule(
        "attempt-node",
        "An attempt chooses among the nodes that a plain computation finds, or finds none either.",
        "a cache, a reused answer or a filter is wrong for one attempt (kubernetes#95449)",
    ),
    _rule(
        "attempt-answers",
        "The totals of nodes and the reasons of a rejection are those of a plain computation.",
        "a score that is computed wrongly, or a reason that sends an operator astray",
    ),
    _rule(
        "attempt-victims",
        "An attempt evicts the pods that a plain dry run of every node finds.",
        "preemption evicts more than it needs, or on a worse node (kubernetes#88442)",
    ),
    _rule(
        "attempt-wakeup",
        "No pod sleeps that fits on a node by a plain computation.",
        "lost wake-ups of QueueingHints (kubernetes#109437, #122018)",
    ),
    _rule(
        "lease-released",
        "A leader that ends leaves its lease to the next one.",
        "nobody schedules for fifteen seconds after each update",
    ),
    _rule(
        "lease-passed-on",
        "A scheduler that waits for the lease takes it as soon as its holder gives it up.",
        "nobody schedules until the next look at the lease, some seconds later",
    ),
)
