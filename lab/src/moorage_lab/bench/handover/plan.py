"""The plan of a measurement of hand-overs, and its report."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from moorage_lab.bench.timing import median

ACTS: Final = ("SIGTERM", "SIGKILL", "SIGSTOP")
"""The acts against a replica, chosen at random."""
POD_CPU: Final = 2
_FULL_SHARE: Final = 0.9
# After the end of the lease another replica has this long to bind its first pod.
LATE_SECONDS: Final = 5.0
# From the last binding of a replica that is told to end to the first binding of another.
HANDOVER_SECONDS: Final = 1.0


class HandoverPlan(msgspec.Struct, frozen=True, kw_only=True):
    """The replicas, their load, and what happens to them.

    Parameters
    ----------
    nodes, node_cpu
        Number of nodes, and the cores of each.
    replicas
        Number of processes of one scheduler.
    rounds
        Number of acts against a replica.
    pods_per_second
        Rate of pod creation. As many pods are deleted.
    lease_seconds
        Duration of the lease. Renewals are given up after two thirds of it.
    stop_seconds
        Longest time for which a process is stopped.
    leader_share
        Share of the acts that are against the leader.
    """

    nodes: int = 1000
    node_cpu: int = 8
    replicas: int = 3
    rounds: int = 20
    pods_per_second: float = 30.0
    lease_seconds: int = 15
    stop_seconds: float = 30.0
    leader_share: float = 0.75

    @property
    def pod_count(self) -> int:
        """Number of pods that are there at a time; nine tenths of the room."""
        return int(self.nodes * self.node_cpu // POD_CPU * _FULL_SHARE)

    @property
    def lease_flags(self) -> tuple[str, ...]:
        """The flags of a scheduler with this lease."""
        renew_ms = self.lease_seconds * 2000 // 3
        retry_ms = self.lease_seconds * 2000 // 15
        return (
            "--leader-elect-lease-duration",
            f"{self.lease_seconds}s",
            "--leader-elect-renew-deadline",
            f"{renew_ms}ms",
            "--leader-elect-retry-period",
            f"{retry_ms}ms",
        )


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One act against a replica.

    Parameters
    ----------
    act
        Name of the signal.
    leader
        Whether the replica held the lease.
    stopped_seconds
        How long the replica was stopped.
    seconds
        From the signal to the first binding of another replica; None if none took over.
    gap_seconds
        From the last binding of the replica to the first binding of another; None if none took
        over.
    """

    act: str
    leader: bool
    stopped_seconds: float = 0.0
    seconds: float | None = None
    gap_seconds: float | None = None


class HandoverReport(msgspec.Struct, frozen=True, kw_only=True):
    """The report of a measurement of hand-overs.

    Parameters
    ----------
    plan
        The plan.
    rounds
        What happened, in order.
    seconds
        Time from the first act to the last.
    created, bound
        Pods created, and bindings that the server took.
    bound_twice, overcommitted, old_writes, lost, refused
        Pods bound more than once; nodes with more requests than allocatable at any time; writes in
        the name of a lease that was over; pods without a node in the end; pods that a kubelet
        refused.
    ended
        Replicas that lost the lease without an act against them, and were replaced.
    """

    plan: HandoverPlan
    rounds: tuple[Round, ...]
    seconds: float
    created: int
    bound: int
    bound_twice: tuple[str, ...] = ()
    overcommitted: tuple[str, ...] = ()
    old_writes: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    ended: int = 0

    @property
    def faults(self) -> list[str]:
        """Faults that were found, one line each; empty when all is well."""
        texts = [f"bound twice: {each}" for each in self.bound_twice]
        texts += [f"too much on node {each}" for each in self.overcommitted]
        texts += [f"old lease: {each}" for each in self.old_writes]
        texts += [f"lost: pod {each}" for each in self.lost]
        texts += [f"refused: {each}" for each in self.refused]
        return texts

    @property
    def late(self) -> list[str]:
        """Hand-overs that took too long, one line each."""
        return list(self._late())

    def as_json(self) -> dict[str, Any]:
        """Return the report as plain JSON values."""
        plain: dict[str, Any] = msgspec.to_builtins(self)
        return {**plain, "faults": self.faults, "late": self.late}

    def as_lines(self) -> list[str]:
        """Return the report as lines for people."""
        plan = self.plan
        return [
            f"{len(self.rounds)} rounds on {plan.replicas} replicas in {self.seconds:.0f} s: "
            f"{plan.nodes} nodes, {self.created} pods created, {self.bound} bound, "
            f"lease of {plan.lease_seconds} s",
            *(line for act in ACTS for line in self._lines_of(act)),
            f"bound twice {len(self.bound_twice)}, nodes too full {len(self.overcommitted)}, "
            f"pods lost {len(self.lost)}, refused by kubelets {len(self.refused)}, "
            f"writes in the name of an old lease {len(self.old_writes)}",
            *([f"replicas that lost the lease by themselves: {self.ended}"] if self.ended else []),
            *(f"FAULT: {fault}" for fault in self.faults),
            *(f"LATE: {each}" for each in self.late),
        ]

    def _lines_of(self, act: str) -> Iterator[str]:
        mine = [each for each in self.rounds if each.act == act]
        over = [each for each in mine if each.seconds is not None]
        yield (
            f"{act:8} {len(mine)} rounds, {sum(each.leader for each in mine)} of the leader, "
            f"{len(over)} hand-overs"
        )
        if over:
            gaps = [each.gap_seconds for each in over if each.gap_seconds is not None]
            yield f"         signal to first binding{spread([_of(each) for each in over])}"
            yield f"         last to first binding  {spread(gaps)}"

    def _late(self) -> Iterator[str]:
        for number, each in enumerate(self.rounds, start=1):
            if not each.leader:
                continue
            if each.act == "SIGTERM" and _gap(each) > HANDOVER_SECONDS:
                yield f"round {number}, SIGTERM: {_gap(each):.2f} s between two bindings"
            late = self.plan.lease_seconds + LATE_SECONDS
            if each.act == "SIGKILL" and _of(each) > late:
                yield f"round {number}, SIGKILL: {_of(each):.2f} s to the first binding"


def spread(seconds: Sequence[float]) -> str:
    """Return the least, median and greatest of some times, and how many there are."""
    if not seconds:
        return "none"
    return (
        f"{min(seconds):6.2f} s least, {median(seconds):6.2f} s median, "
        f"{max(seconds):6.2f} s greatest ({len(seconds)})"
    )


def _of(each: Round) -> float:
    return float("inf") if each.seconds is None else each.seconds


def _gap(each: Round) -> float:
    return float("inf") if each.gap_seconds is None else each.gap_seconds
