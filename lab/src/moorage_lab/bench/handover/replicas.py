"""The replicas of a measurement of hand-overs: processes that are started, watched and replaced."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from moorage.api.codec import decode_untyped, encode
from moorage.base import aio
from moorage.base.errors import MoorageError
from moorage_lab.bench.audit_tail import AuditTail
from moorage_lab.bench.handover.book import HandoverBook
from moorage_lab.bench.handover.plan import HandoverPlan
from moorage_lab.bench.processes import Child

LOOK_SECONDS: Final = 0.02
PATIENCE_SECONDS: Final = 60.0
"""Beyond the lease; so long without a hand-over is a fault of its own, not a slow one."""
_START_SECONDS: Final = 120.0
_LEASE_LOST: Final = "leader election lost"


class Replicas:
    """The processes of the scheduler, and the server's witness of their calls.

    Parameters
    ----------
    plan
        The number of replicas, and their lease.
    place
        Folder of the kubeconfig, the audit log, and the replicas' files.
    process
        Makes the process of a replica.

    Attributes
    ----------
    running
        The processes by name.
    excused
        The replicas that were told to end, or stopped. A leader that was stopped for as long as its
        lease may lose it a moment later.
    ended
        Number of replicas that lost the lease without an act against them.
    """

    def __init__(
        self, plan: HandoverPlan, place: Path, *, process: Callable[..., Child] = Child
    ) -> None:
        self._process = process
        self._plan = plan
        self._place = place
        self._tail = AuditTail(place / "audit.jsonl")
        self._book = HandoverBook(plan.lease_seconds)
        self._kubeconfig: Any = decode_untyped((place / "kubeconfig").read_bytes())
        self._started = 0
        self.running: dict[str, Child] = {}
        self.excused: set[str] = set()
        self.ended = 0

    def look(self) -> HandoverBook:
        """Return the book with everything that the server has answered by now."""
        self._book.add(self._tail.fresh())
        return self._book

    async def ends(self, name: str) -> None:
        """Wait until a replica has ended.

        Raises
        ------
        MoorageError
            It goes on.
        """
        child = self.running.get(name)  # none: it has ended, and was replaced
        if child is not None and not await child.ends_within(PATIENCE_SECONDS):
            raise MoorageError(f"{name} does not end; {self.tails()}")

    async def replace(self, *, later: str = "") -> None:
        """Start a replica for each that has ended, as a kubelet does with containers.

        On a busy machine a replica may lose its lease without an act against it. If nothing took
        its place, all might end, one after the other.

        Parameters
        ----------
        later
            A replica that is not replaced yet.

        Raises
        ------
        MoorageError
            A replica ended that nothing was done to, and not for its lease.
        """
        for name, child in list(self.running.items()):
            if name == later or not child.ended:
                continue
            if name not in self.excused:
                if _LEASE_LOST not in child.output():
                    child.raise_if_ended()
                self.ended += 1
            del self.running[name]
        while len(self.running) < self._plan.replicas:
            await self._start_replica()

    async def complete(self) -> None:
        """Replace what has ended, and wait until each replica has asked for the lease.

        Raises
        ------
        MoorageError
            A replica ended that nothing was done to, or a new replica does not ask for the lease.
        """
        await self.replace()
        waited = 0.0
        while not set(self.running) <= self.look().standing_by:
            await aio.sleep(LOOK_SECONDS)
            waited += LOOK_SECONDS
            await self.replace()
            if waited > _START_SECONDS:
                raise MoorageError(f"a replica does not ask for the lease; {self.tails()}")

    async def leader(self) -> str:
        """Return the replica that holds the lease; wait while one that has ended holds it."""
        while self.look().holder not in self.running:
            await aio.sleep(LOOK_SECONDS)
            await self.replace()
        return self._book.holder

    async def stop(self) -> None:
        """End all replicas."""
        for child in self.running.values():
            await child.stop()
        self._tail.close()

    def tails(self) -> str:
        """Return the last lines of each replica."""
        return "; ".join(f"{name}: {each.output()[-500:]}" for name, each in self.running.items())

    async def _start_replica(self) -> None:
        self._started += 1
        name = f"replica-{self._started}"
        path = self._place / f"{name}.kubeconfig"
        user = self._kubeconfig["users"][0]
        mine = {**user["user"], "as": name, "as-groups": ["system:masters"]}
        path.write_bytes(encode({**self._kubeconfig, "users": [{**user, "user": mine}]}))
        flags = ["run", "--kubeconfig", str(path), "--seed", str(self._started)]
        flags += ["--secure-port", "0", *self._plan.lease_flags]
        child = self.running[name] = self._process(name, flags, log=self._place / f"{name}.log")
        await child.start()
