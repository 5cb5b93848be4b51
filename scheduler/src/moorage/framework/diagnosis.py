"""The reasons why no node took a pod: the statuses of a failed attempt, and the text for people.

Rules: scheduling spec, cycle section 4 (kubernetes v1.36 ``pkg/scheduler/framework/types.go``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cached_property

import msgspec

from moorage.base.no_names import NO_NAMES
from moorage.framework.status import Status

NO_NODES = "no nodes available to schedule pods"


class Diagnosis(msgspec.Struct, frozen=True, dict=True):
    """The outcome of an attempt that found no node.

    Parameters
    ----------
    num_nodes
        All nodes of the snapshot, the N of ``0/N nodes are available``.
    reason_counts
        How many nodes fail for each reason; nodes left out by PreFilter included.
    unschedulable_plugins
        Plugins that rejected the pod; their events may requeue it.
    pending_plugins
        The plugins among them that answered Pending.
    preemption_rejectors
        Plugins that rejected the pod on nodes that were tried for preemption; their events may
        requeue it, too.
    pre_filter_message
        Set when PreFilter as a whole rejected the pod; it then stands for every node.
    post_filter_message
        The text of the PostFilter plugins.
    """

    num_nodes: int
    reason_counts: dict[str, int] = {}
    unschedulable_plugins: frozenset[str] = NO_NAMES
    pending_plugins: frozenset[str] = NO_NAMES
    preemption_rejectors: frozenset[str] = NO_NAMES
    pre_filter_message: str = ""
    post_filter_message: str = ""

    @cached_property
    def message(self) -> str:
        """The text of the ``FailedScheduling`` event and the ``PodScheduled`` condition."""
        text = f"0/{self.num_nodes} nodes are available:"
        if self.pre_filter_message:
            text += f" {self.pre_filter_message}."
        elif self.reason_counts:
            # Sorted as strings, so that "10 x" comes before "2 y", as kube-scheduler prints it.
            entries = sorted(f"{count} {reason}" for reason, count in self.reason_counts.items())
            text += f" {', '.join(entries)}."
        if self.post_filter_message:
            text += f" {self.post_filter_message}"
        return text

    def with_post_filter(self, message: str, rejectors: frozenset[str] = NO_NAMES) -> Diagnosis:
        """Return the same diagnosis with the PostFilter part filled in."""
        if message == self.post_filter_message and rejectors == self.preemption_rejectors:
            return self
        return msgspec.structs.replace(
            self, post_filter_message=message, preemption_rejectors=rejectors
        )


def of_one_node(node_name: str, status: Status) -> Diagnosis:
    """Diagnose a rejection by Reserve or Permit on the chosen node.

    The node is already chosen, so N is 1 and the histogram has that one status
    (scheduling spec, cycle section 2.3).
    """
    assert status.rejected, f"{status} on {node_name} is not a rejection"
    plugins = frozenset({status.plugin} if status.plugin else ())
    return Diagnosis(
        num_nodes=1,
        reason_counts=dict(Counter(status.reasons)),
        unschedulable_plugins=plugins,
        pending_plugins=plugins if status.code.text == "Pending" else NO_NAMES,
    )


def count_reasons(tuples: Iterable[tuple[tuple[str, ...], int]]) -> dict[str, int]:
    """Count nodes by single reason, from pairs (reasons of a node, nodes with these reasons)."""
    counts: Counter[str] = Counter()
    for reasons, nodes in tuples:
        for reason in reasons:
            counts[reason] += nodes
    return dict(counts)
