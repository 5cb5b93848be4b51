"""The pods of a run: when each came, where and when it was placed, and how it ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from moorage.api.pod import Pod
from moorage.virtual.model import ClusterModel
from moorage_lab.traces.arrivals import amounts_of

COLUMNS: Final = (
    "namespace", "name", "node", "arrived", "placed", "wait", "ended", "outcome", "evictedBy",
    "reason",
)  # fmt: skip
"""The columns of the table of pods; times in seconds after the begin."""


class PodRecord:
    """One pod of a run.

    Attributes
    ----------
    pod
        Its first version.
    group
        Its source, by number; -1 for a pod that was there at the start, or was made by an owner.
    arrived, placed, ended
        Seconds after the begin; None for what did not happen.
    node
        Its node, "" for none.
    outcome
        ``pending``, ``running``, ``completed``, ``evicted``, ``lost`` or ``gaveUp``.
    evicted_by
        The preemptor.
    amounts
        Its requests by resource.
    """

    __slots__ = (
        "amounts", "arrived", "ended", "evicted_by", "group", "node", "outcome", "placed", "pod",
        "reason", "runs",
    )  # fmt: skip

    def __init__(self, pod: Pod, arrived: float, *, group: int, runs: float | None) -> None:
        self.pod = pod
        self.arrived = arrived
        self.group = group
        self.runs = runs
        self.node = pod.spec.node_name
        self.placed: float | None = 0.0 if self.node else None
        self.ended: float | None = None
        self.outcome = "running" if self.node else "pending"
        self.evicted_by = ""
        self.reason = ""
        self.amounts = amounts_of(pod)

    @property
    def waiting_seconds(self) -> float | None:
        """Seconds from its arrival until it was placed, to the nanosecond; None without a node."""
        return None if self.placed is None else round(self.placed - self.arrived, 9)

    def as_row(self) -> list[Any]:
        """Return the values of the table's columns."""
        return [
            self.pod.namespace, self.pod.name, self.node, self.arrived, self.placed,
            self.waiting_seconds, self.ended, self.outcome, self.evicted_by, self.reason,
        ]  # fmt: skip


class Records:
    """The pods of a run, kept by listening to it.

    Parameters
    ----------
    model
        The run.
    on_placed, on_gone
        Called with a pod that has got a node, and with one that is gone.

    Attributes
    ----------
    pods
        By uid, in the order in which they came.
    requested
        Sums of the requests of placed pods, by namespace and resource.
    evicted
        Number of pods that were evicted for others so far.
    pending
        Uids of the pods without a node.
    """

    def __init__(
        self,
        model: ClusterModel,
        *,
        on_placed: Callable[[PodRecord], None],
        on_gone: Callable[[PodRecord], None],
    ) -> None:
        self._model = model
        self._begin_ns = model.virtual_now_ns
        self._on_placed = on_placed
        self._on_gone = on_gone
        self._coming: tuple[int, float | None] = (-1, None)
        self.pods: dict[str, PodRecord] = {}
        self.requested: dict[str, dict[str, int]] = {}
        self.evicted = 0
        self.pending: dict[str, None] = {}
        for pod in model.objects.pods.values():
            self._begin(pod)
        model.listeners.append(self._record_change)

    @property
    def now(self) -> float:
        """Seconds after the begin."""
        return (self._model.virtual_now_ns - self._begin_ns) / 1e9

    def arrive(self, pod: Pod, *, group: int, runs: float | None) -> PodRecord:
        """Put a pod into the cluster."""
        self._coming = (group, runs)
        added = self._model.add_pod(pod)
        self._coming = (-1, None)
        return self.pods[added.uid]

    def _begin(self, pod: Pod) -> None:
        group, runs = self._coming
        record = self.pods[pod.uid] = PodRecord(pod, self.now, group=group, runs=runs)
        if record.node:
            self._count(record, 1)
        else:
            self.pending[pod.uid] = None

    def _record_change(self, pod: Pod) -> None:
        record = self.pods.get(pod.uid)
        if record is None:
            self._succeed(pod)
        elif self._model.current(pod) is None:
            self._gone(record)
        elif pod.spec.node_name and not record.node:
            record.node, record.placed, record.outcome = pod.spec.node_name, self.now, "running"
            self.pending.pop(pod.uid, None)
            self._count(record, 1)
            self._on_placed(record)

    def _succeed(self, pod: Pod) -> None:
        """Begin the record of a new pod; the successor of a pod runs as long as that was to run."""
        before = [each for each in self._model.evictions.values() if each.successor == pod.uid]
        old = self.pods.get(before[-1].pod.uid) if before else None
        if old is not None:
            self._coming = (old.group, old.runs)
        self._begin(pod)
        self._coming = (-1, None)

    def _gone(self, record: PodRecord) -> None:
        self.pending.pop(record.pod.uid, None)
        record.ended = self.now
        if record.placed is not None:
            self._count(record, -1)
        if record.outcome in ("pending", "running"):
            eviction = self._model.evictions.get(record.pod.uid)
            preemptor = None if eviction is None else eviction.by
            record.outcome = "lost" if preemptor is None else "evicted"
            if preemptor is not None:
                record.evicted_by = preemptor.full_name
                self.evicted += 1
        self._on_gone(record)

    def _count(self, record: PodRecord, sign: int) -> None:
        there = self.requested.setdefault(record.pod.namespace, {})
        for name, amount in record.amounts.items():
            there[name] = there.get(name, 0) + sign * amount

    def explain(self, reasons: Mapping[str, str]) -> None:
        """Note why pods have no node."""
        for uid in self.pending:
            self.pods[uid].reason = reasons.get(uid, "it was not tried yet")

    def table(self) -> dict[str, list[Any]]:
        """Return the columns of the table of pods."""
        rows = [each.as_row() for each in self.pods.values()]
        return {name: [row[number] for row in rows] for number, name in enumerate(COLUMNS)}
