"""A look at a lease that its holder gave up: a scheduler that waits for it must take it at once."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Collection
from functools import partial

from moorage.base.clock import NS_PER_SECOND
from moorage_lab.fault_sim.replica import Replica

# The watch tells of the free lease, which is read and written: six messages of milliseconds. One
# that does not hear of it looks again after two to four seconds.
_AT_ONCE_SECONDS = 0.2
# Within this time a scheduler that was started waits, a call that was slow is answered, and a watch
# that broke is opened again.
_SETTLED_NS = 10 * NS_PER_SECOND


class Handovers:
    """Judges how a lease that was given up finds its next holder.

    Parameters
    ----------
    replicas
        The schedulers.
    now_ns
        Tells the monotonic time, nanoseconds.
    answers
        Tells whether the server answers, and can write.
    holder
        Tells who holds the lease by the server's word, "" for nobody.
    on_breach
        Told how a free lease was left.
    """

    def __init__(
        self,
        replicas: Collection[Replica],
        *,
        now_ns: Callable[[], int],
        answers: Callable[[], bool],
        holder: Callable[[], str],
        on_breach: Callable[[str], None],
    ) -> None:
        self._replicas = replicas
        self._now_ns = now_ns
        self._answers = answers
        self._holder = holder
        self._on_breach = on_breach
        self._cut_ns = 0

    def cut(self) -> None:
        """Note that every stream breaks now."""
        self._cut_ns = self._now_ns()

    def begins(self) -> None:
        """Note who waits for the lease that is free since now, and look again in a moment."""
        waiting = [each.identity for each in self._replicas if self._waits(each)]
        if waiting and self._answers():
            # Of no process: the server that is asked may die meanwhile.
            later = asyncio.get_running_loop().call_later
            contextvars.Context().run(later, _AT_ONCE_SECONDS, partial(self._look, waiting))

    def _look(self, waiting: Collection[str]) -> None:
        if not self._answers() or self._holder():
            return
        still = [each.identity for each in self._replicas if self._waits(each)]
        for identity in still:
            if identity in waiting:
                self._on_breach(
                    f"{identity} waits for the lease, which is free for {_AT_ONCE_SECONDS} s"
                )

    def _waits(self, replica: Replica) -> bool:
        """Whether a scheduler waits for the lease, and nothing keeps it from hearing of it.

        One that was stopped, or whose connection was disturbed, may have to open its watch anew.
        """
        now_ns, faults, task = self._now_ns(), replica.faults, replica.task
        return (
            replica.runs
            and not replica.leading
            and task is not None
            and not (task.done() or task.cancelling())
            and now_ns - max(replica.started_ns, self._cut_ns) > _SETTLED_NS
            and not faults.blind_ns(now_ns)
            and not faults.spells(now_ns - _SETTLED_NS)
        )
