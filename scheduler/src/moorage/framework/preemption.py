"""The data that preemption leaves in the cycle state, for explaining and for conformance.

The plugin writes a `PreemptionReport` into the cycle state; conformance and explaining read it. The
report causes no eviction: victims are in `PostFilterResult`, and ``service`` evicts them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from moorage.api.pod import Pod
from moorage.framework.cycle_state import StateKey
from moorage.framework.status import Status
from moorage.snapshot.pod_groups import GroupKey
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot


class Candidate(msgspec.Struct, frozen=True):
    """A node on which the preemptor would fit after evictions, and the cost of the evictions.

    Parameters
    ----------
    node_name
        The node.
    victims
        The pods to evict, most important first; never empty.
    violations
        How many of the victims a PodDisruptionBudget protects.
    """

    node_name: str
    victims: tuple[PodInfo, ...]
    violations: int


class PreemptionReport(msgspec.Struct, frozen=True):
    """One attempt to make room.

    Parameters
    ----------
    potential
        Nodes on which evicting pods may help, by row: the nodes for a dry run.
    candidates
        The candidates in the order of the dry run, candidates without violations first.
    rejected
        Tried nodes that are no candidates, with the reason.
    ties
        Names of the nodes equal under every criterion of the choice, the chosen node first.
    """

    potential: tuple[str, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    rejected: Mapping[str, Status] = {}
    ties: tuple[str, ...] = ()


PREEMPTION: StateKey[PreemptionReport] = StateKey("preemption")
"""Written when a dry run took place in an attempt with `EXPLAIN`."""

TRIED: StateKey[int] = StateKey("nodes tried for preemption")
"""Number of nodes tried out; for benchmarks."""

CHOSEN_BY: StateKey[str] = StateKey("rule of the choice among candidates")
"""The rule that chose the node and its victims, for people; no decision reads it."""

EXPLAIN: StateKey[bool] = StateKey("explain preemption")
"""True where a report is wanted; scheduling needs none."""


AWAITS_SHARE: StateKey[bool] = StateKey("share of leaving pods")
"""True where a plugin rejects a pod in PreFilter only because pods still count that are about to
leave. The rejection ends by itself, so the pod's group does not fail for it."""

AWAITS_NOMINATED: StateKey[bool] = StateKey("nominated pods first")
"""True where a plugin evicts nobody for a pod until nominated pods are placed. The pod's group does
not fail for that: its other members may be among these pods."""


class Narrowing:
    """The exchange with extenders between finding candidates and choosing one.

    The engine writes the exchange before PostFilter; the plugin that finds candidates leaves them
    in `offered` instead of choosing. Once `answered` is set, the plugin is asked again and chooses
    among `remaining`.
    """

    __slots__ = ("answered", "failure", "offered", "remaining")

    def __init__(self) -> None:
        self.offered: tuple[Candidate, ...] = ()
        self.remaining: tuple[Candidate, ...] = ()
        self.failure = ""
        self.answered = False

    def set_remaining(self, candidates: Sequence[Candidate] = (), *, failure: str = "") -> None:
        """Set the remaining candidates, or the failure of an extender."""
        self.remaining, self.failure, self.answered = tuple(candidates), failure, True


NARROWING: StateKey[Narrowing] = StateKey("narrowing")
"""Set while PostFilter runs in an attempt whose extenders have a say in preemption."""


class EvictionsUnderWay(Protocol):
    """Tells whether room is being made for a pod or a group right now."""

    @property
    def requested(self) -> Collection[str]:
        """The uids of the victims of preemption; some of them may have left their nodes."""
        ...

    def running_for(self, uid: str) -> bool:
        """Whether some eviction for this preemptor has not been sent to the API yet."""
        ...

    def waits_for_victims(self, uid: str) -> bool:
        """Whether a pod that was chosen as a victim for this preemptor is about to leave."""
        ...

    def is_leaving(self, victim: Pod) -> bool:
        """Whether a victim of preemption still has its node, and gives it up soon."""
        ...

    def will_leave(self, pod: Pod) -> bool:
        """Whether a pod still has its node, and is about to leave it, for whatever reason.

        A pod that stays long after its grace does not count: a finalizer may hold it for ever.
        """
        ...

    @property
    def groups_wait(self) -> bool:
        """Whether `awaited_by` may be true of any group."""
        ...

    def awaited_by(self, group: GroupKey) -> bool:
        """Whether a group waits for victims that its last attempt chose."""
        ...


class NoEvictions:
    """`EvictionsUnderWay` without evictions: benchmarks of the engine, conformance, what-if."""

    groups_wait = False
    requested: Collection[str] = ()

    def running_for(self, uid: str) -> bool:
        """Answer no."""
        del uid
        return False

    def waits_for_victims(self, uid: str) -> bool:
        """Answer no."""
        del uid
        return False

    def is_leaving(self, victim: Pod) -> bool:
        """Answer as the pod itself says."""
        return is_preempted(victim)

    def will_leave(self, pod: Pod) -> bool:
        """Answer as the pod itself says."""
        return bool(pod.metadata.deletion_timestamp)

    def awaited_by(self, group: GroupKey) -> bool:
        """Answer no."""
        del group
        return False


def leaving_pods(snapshot: Snapshot, evictions: EvictionsUnderWay) -> list[PodInfo]:
    """Return the pods that are about to leave their nodes, for whatever reason, on all nodes."""
    table = snapshot.table
    pods = dict(table.terminating)
    for uid in evictions.requested:
        node_name = None if uid in pods else table.node_of_pod(uid)
        row = None if node_name is None else table.row_of(node_name)
        if row is not None:
            pods[uid] = table.pods_by_row[row][uid]
    return [pod for pod in pods.values() if evictions.will_leave(pod.pod)]


def makes_room(pods: Iterable[PodInfo], priority: int, evictions: EvictionsUnderWay) -> bool:
    """Whether a pod of less priority is a victim of preemption, and about to leave its node."""
    return any(each.priority < priority and evictions.is_leaving(each.pod) for each in pods)


def awaits_victims(snapshot: Snapshot, pod: PodInfo, evictions: EvictionsUnderWay) -> bool:
    """Whether a pod waits for the victims of its preemption.

    A scheduler that has just been started knows no victims of its own: there, the pod waits if it
    is nominated to a node that pods of less priority are about to leave.
    """
    if evictions.waits_for_victims(pod.uid):
        return True
    _, row = snapshot.nominated_level(pod)
    return row is not None and makes_room(snapshot.pods(row), pod.priority, evictions)


def is_preempted(pod: Pod) -> bool:
    """Whether the pod is terminating because a scheduler evicted it."""
    if not pod.metadata.deletion_timestamp:
        return False
    reasons = [each for each in pod.status.conditions if each.type == "DisruptionTarget"]
    return bool(reasons) and (
        reasons[0].status == "True" and reasons[0].reason == "PreemptionByScheduler"
    )
