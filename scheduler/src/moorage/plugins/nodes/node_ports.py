"""NodePorts: only one pod on a node can use a host port.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/nodeports``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.pod import Pod
from moorage.framework.capabilities import Capabilities, Reads
from moorage.framework.cycle_state import CycleState, StateKey
from moorage.framework.handle import Handle
from moorage.framework.points import EventRegistration, PreFilterResult
from moorage.framework.status import SKIP, SUCCESS, Code, FilterAnswer, Status, answer_where
from moorage.framework.subjects import Subject
from moorage.framework.what_if import RowCounts
from moorage.plugins.answers import SetAnswers, memo_of
from moorage.plugins.pod_hints import holds_place
from moorage.snapshot.importance import RankedPods
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import PORTS, HostPort, host_ports
from moorage.snapshot.shifted import RowSums
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

REASON: Final = "node(s) didn't have free ports for the requested pod ports"
_ANY_IP: Final = "0.0.0.0"

IntArray = NDArray[np.int64]

_PRE_FILTER: StateKey[SetAnswers] = StateKey("PreFilterNodePorts")


class NodePorts:
    """PreFilter and Filter plugin; takes no arguments."""

    name = "NodePorts"

    def __init__(self, args: object, handle: Handle) -> None:
        del args
        self._snapshot = handle.snapshot
        self._reason = handle.reasons.intern(REASON)
        self._ports_in_use = SetAnswers(len)

    def capabilities(self) -> Capabilities:
        """Declare reuse by row, which pods Filter sees, and the scalar form."""
        return Capabilities(
            filter_reads=Reads.PODS,
            shape_parts=(PORTS,),
            filter_sees_pod=self.sees_pod,
            filter_counts=self.filter_counts,
            filter_row=self.filter_row,
            rejects_about=Subject.PORTS,
        )

    def pre_filter(
        self, state: CycleState, pod: PodInfo, snapshot: Snapshot
    ) -> tuple[PreFilterResult | None, Status]:
        """Skip a pod that wants no host port."""
        del snapshot
        part = pod.part(PORTS)
        if not part.value:
            return None, SKIP
        state.write(_PRE_FILTER, memo_of(part, self, _question))
        return None, SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, view: NodeView) -> FilterAnswer | None:
        """Reject rows where a wanted port is in use.

        Raises
        ------
        StateMissingError
            PreFilter of this plugin is not enabled.
        """
        del pod
        taken = state.read(_PRE_FILTER).gather(self._snapshot.port_sets, view) != 0
        return answer_where(taken, Code.UNSCHEDULABLE, self._reason)

    def filter_counts(
        self, state: CycleState, pod: PodInfo, view: NodeView, ranked: RankedPods
    ) -> RowCounts:
        """Return the number of pods on each row that use a wanted port.

        Raises
        ------
        StateMissingError
            PreFilter of this plugin is not enabled.
        """
        state.read(_PRE_FILTER)
        users = _PortUsers(pod.part(PORTS).value, ranked, self._reason)
        users.alone = users.number_of_ports() != self._ports_in_use.gather(
            self._snapshot.port_sets, view
        )
        return users

    def sees_pod(self, other: PodInfo) -> bool:
        """Whether a pod has host ports."""
        return bool(other.part(PORTS).value)

    def filter_row(
        self, state: CycleState, pod: PodInfo, row: int, more: RowSums
    ) -> tuple[int, int]:
        """Judge one row as `filter` does.

        Raises
        ------
        StateMissingError
            PreFilter of this plugin is not enabled.
        """
        del pod, more
        taken = state.read(_PRE_FILTER).of_row(self._snapshot.port_sets, row)
        return (int(Code.UNSCHEDULABLE), self._reason) if taken else (0, 0)

    def events_to_register(self) -> Sequence[EventRegistration]:
        """Register pods that free a wanted port, and new nodes."""
        gone = ClusterEvent(Resource.POD, Action.DELETE)
        node = ClusterEvent(Resource.NODE, Action.ADD)
        return (
            EventRegistration(gone, _pod_deleted_hint, replicas_agree=True),
            EventRegistration(node),
        )


class _PortUsers:
    """`RowCounts` of NodePorts: the pods of the row that use a wanted port.

    Parameters
    ----------
    wanted
        The wanted ports.
    ranked
        The pods of the rows, with kinds.
    reason
        The id of the reasons of failing rows.

    Attributes
    ----------
    kinds
        The kind of each pod.
    alone
        Rows where pods share a port: it counts as free as soon as one of them has gone.
    """

    def __init__(self, wanted: Sequence[HostPort], ranked: RankedPods, reason: int) -> None:
        self._reason, self.kinds = reason, ranked.kind
        self._of_kind = ranked.of_kind
        self.alone: NDArray[np.bool_] | None = None
        uses = [
            ports_conflict(wanted, frozenset(used)) if (used := other.part(PORTS).value) else False
            for other in ranked.of_kind
        ]
        self.by_kind: IntArray = np.array([[*uses, False]], np.int64)
        self.counting_rows: NDArray[np.bool_] = np.ones((1, len(ranked.kind)), np.bool_)
        self._users: IntArray = self.by_kind[0][ranked.kind].sum(axis=1)

    def number_of_ports(self) -> IntArray:
        """Return int64, (rows,): the number of ports of each pod, summed over the row's pods."""
        ports = [len(frozenset(other.part(PORTS).value)) for other in self._of_kind]
        number: IntArray = np.array([*ports, 0], np.int64)[self.kinds].sum(axis=1)
        return number

    def judge_without(self, gone: IntArray) -> FilterAnswer | None:
        """Return the answer about the rows; None where all rows pass."""
        return answer_where(self._users > gone[0], Code.UNSCHEDULABLE, self._reason)


def ports_conflict(wanted: Iterable[HostPort], used: frozenset[HostPort]) -> bool:
    """Whether any wanted (ip, protocol, port) clashes with a used one.

    ``0.0.0.0`` clashes with every address, on either side; other addresses are compared as text.
    """
    return any(
        protocol == used_protocol
        and port == used_port
        and (address == used_address or _ANY_IP in (address, used_address))
        for address, protocol, port in wanted
        for used_address, used_protocol, used_port in used
    )


def _question(wanted: tuple[HostPort, ...]) -> SetAnswers:
    return SetAnswers(lambda used: int(ports_conflict(wanted, used)))


def _pod_deleted_hint(waiting: Pod, old: object | None, new: object | None) -> bool:
    del new
    assert isinstance(old, Pod)
    if not holds_place(old):
        return False
    return ports_conflict(host_ports(waiting), frozenset(host_ports(old)))
