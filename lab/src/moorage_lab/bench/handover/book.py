"""The writes of a scheduler's replicas, by the server's audit log, and the faults in them.

The server is the only witness: its clock gives all times, and a write counts when it arrived.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator

import msgspec

from moorage_lab.bench.audit_tail import AuditedCall

ELECTING = "leader-election"
"""End of the user agent of a replica's calls about its lease."""
_READS = frozenset({"get", "list", "watch"})


class Bind(msgspec.Struct, frozen=True):
    """A binding that the server took: the pod's name, the replica, and the time of the answer."""

    pod: str
    replica: str
    answered: float


class HandoverBook:
    """The lease writes, bindings and other writes of replicas.

    Parameters
    ----------
    lease_seconds
        Duration of the lease.
    """

    def __init__(self, lease_seconds: float) -> None:
        self._lease_seconds = lease_seconds
        self._holders: list[tuple[float, str]] = []
        self._renewed: dict[str, list[float]] = {}
        self._writes: list[AuditedCall] = []
        self.binds: list[Bind] = []
        """The bindings that the server took, in the order of its answers."""
        self.standing_by: set[str] = set()
        """The replicas that have asked for the lease."""

    def add(self, calls: Iterable[AuditedCall]) -> None:
        """Take in further calls, in the order of their answers."""
        for call in calls:
            if call.resource == "leases":
                self._lease(call)
            elif call.verb not in _READS and not call.agent.endswith(ELECTING):
                self._writes.append(call)
                if call.subresource == "binding" and call.code < 300:
                    self.binds.append(Bind(call.name, call.user, call.answered))

    @property
    def holder(self) -> str:
        """The replica that wrote the lease last, "" for none."""
        return self._holders[-1][1] if self._holders else ""

    def last_bind(self, replica: str, *, before: float) -> float | None:
        """Return the time of a replica's last binding before a time; None if there is none."""
        times = [bind.answered for bind in self.binds if bind.replica == replica]
        earlier = [each for each in times if each < before]
        return earlier[-1] if earlier else None

    def first_bind(self, *, after: float, not_by: str) -> Bind | None:
        """Return the first binding after a time by another replica; None if there is none."""
        for bind in reversed_until(self.binds, after):
            if bind.replica != not_by:
                return bind
        return None

    def bound_twice(self) -> list[str]:
        """Return the pods that were bound more than once, with the replicas."""
        replicas: dict[str, list[str]] = {}
        for bind in self.binds:
            replicas.setdefault(bind.pod, []).append(bind.replica)
        return [f"{pod} by {', '.join(by)}" for pod, by in replicas.items() if len(by) > 1]

    def old_writes(self) -> list[str]:
        """Return the writes that arrived in the name of a lease that was over or taken."""
        texts: list[str] = []
        times = [at for at, _ in self._holders]
        for call in self._writes:
            place = bisect_right(times, call.received)
            holder = self._holders[place - 1][1] if place else ""
            renewals = self._renewed.get(call.user, [])
            mine = bisect_right(renewals, call.received)
            age = call.received - renewals[mine - 1] if mine else float("inf")
            if holder != call.user or age > self._lease_seconds:
                texts.append(
                    f"{call.user}: {call.verb} {call.resource} {call.name}, {age:.3f} s after its "
                    f"last renewal, while {holder or 'nobody'} held the lease"
                )
        return texts

    def _lease(self, call: AuditedCall) -> None:
        self.standing_by.add(call.user)
        if call.verb in _READS or call.code >= 300:
            return
        self._renewed.setdefault(call.user, []).append(call.received)
        if self.holder != call.user:
            self._holders.append((call.answered, call.user))


def reversed_until(binds: list[Bind], after: float) -> Iterator[Bind]:
    """Yield the bindings after a time, oldest first."""
    start = len(binds)
    while start and binds[start - 1].answered > after:
        start -= 1
    yield from binds[start:]
