"""Whether the writes of a call are on the disk, before the call is answered.

Place in the flow: `server` asks here at the end of each call, where a journal keeps the cluster.
Writes are kept in groups (`moorage_sandbox.storage.persistence`); a group that cannot be kept is
taken back, and with it whatever a reply says about it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from moorage.kinds.status import StatusError, internal
from moorage_sandbox.apiserver.wire.render import status_reply
from moorage_sandbox.apiserver.wire.requests import Reply, Request
from moorage_sandbox.storage.persistence import Group, Persistence

# Attempts to answer a read whose answers contain undone writes (a guess: one undone write is rare).
_READ_TRIES: Final = 5


class ThreadWrites:
    """The groups of the writes of one call in the worker thread."""

    def __init__(self, undone_times: int) -> None:
        self.undone_times = undone_times
        self.groups: list[Group] = []


class Durability:
    """Keeps replies back until the writes in them are on the disk.

    ``persistence`` is None where no journal keeps the cluster.
    """

    def __init__(self) -> None:
        self.persistence: Persistence | None = None
        # How often writes have been taken back.
        self._undone_times = 0
        # The writes of the call that the worker thread answers.
        self._in_thread = ThreadWrites(0)

    def note_undone(self) -> None:
        """Note that writes have been taken back."""
        self._undone_times += 1

    async def confirmed(
        self, request: Request, reply: Reply, again: Callable[[Request], Awaitable[Reply]]
    ) -> Reply:
        """Return a reply once every write in it is on the disk.

        Parameters
        ----------
        request, reply
            The call, and its reply.
        again
            Answers the call once more: a read whose answer contained writes that were taken back.
        """
        assert self.persistence is not None, "writes are kept"
        for _ in range(_READ_TRIES):
            try:
                await self.persistence.durable()
            except StatusError as error:
                if request.method != "GET" or self.persistence.stopped is not None:
                    return status_reply(error)
                reply = await again(request)
            else:
                return reply
        return status_reply(internal("writes are being taken back; try again"))

    def begin_in_thread(self) -> ThreadWrites:
        """Begin to note the writes of a call that will be answered in the worker thread."""
        return ThreadWrites(self._undone_times)

    def enter_thread(self, writes: ThreadWrites) -> None:
        """Note writes of the worker thread from now on for its next call; called there."""
        self._in_thread = writes

    def note_write(self) -> None:
        """Note the group of a write that the worker thread has just done."""
        if self.persistence is None:
            return
        group, groups = self.persistence.group_of_last_write(), self._in_thread.groups
        if group is not None and group not in groups[-1:]:
            groups.append(group)

    async def refusal_of(self, writes: ThreadWrites) -> Reply | None:
        """Return the reply to a call whose writes were taken back; None where none were."""
        if writes.undone_times == self._undone_times:
            return None
        groups = writes.groups
        refusals = [refusal for group in groups if (refusal := await _refusal(group))]
        if refusals and len(refusals) == len(groups):
            return status_reply(refusals[0])
        # The call was answered while other writes were taken back; some of its own may be, too.
        return status_reply(internal("writes were taken back; look before you try again"))


async def _refusal(group: Group) -> StatusError | None:
    """Return why a group of writes was taken back; None where it is on the disk."""
    try:
        await group.wait_durable()
    except StatusError as refusal:
        return refusal
    return None
