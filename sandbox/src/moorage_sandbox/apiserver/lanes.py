"""The lanes of calls: on the loop, or in the worker thread.

Place in the flow: `server` has the lane of a call chosen once, before its first step. A call that
may take long is answered in the worker thread (`worker_thread`), so that it keeps no other call
waiting. What takes long is known from the sizes of what a call sends and reads. Only the cost of
expressions is not: a call that may evaluate some begins on the loop, and starts again in the thread
as soon as one may take long.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from functools import partial
from http import HTTPStatus
from typing import Final

from moorage.cel.evaluators import LATER, TooLongHere, running_on
from moorage.kinds.status import StatusError, internal, timed_out
from moorage_sandbox.apiserver.catalog import Routes
from moorage_sandbox.apiserver.chain import READS, may_be_admitted
from moorage_sandbox.apiserver.durability import Durability, ThreadWrites
from moorage_sandbox.apiserver.policies.stored import StoredPolicies
from moorage_sandbox.apiserver.webhooks.admission import Webhooks
from moorage_sandbox.apiserver.webhooks.answers import answering_with, current_answers
from moorage_sandbox.apiserver.webhooks.gathering import Gathering
from moorage_sandbox.apiserver.wire.fairness import is_lease
from moorage_sandbox.apiserver.wire.render import status_reply
from moorage_sandbox.apiserver.wire.requests import Reply, Request
from moorage_sandbox.apiserver.worker_thread import BODY_BYTES_MAX, WorkerThread, takes_long
from moorage_sandbox.rules.cel_process import CelProcess
from moorage_sandbox.storage.reads import TRIES_MAX, GoneError, LongCall, Reads, StaleError, noting
from moorage_sandbox.storage.store import Store

NOT_AWAITED: Final = status_reply(timed_out())
"""The reply to a caller that no longer waits: its write may stay in place."""
# Upstream's words for a write that was tried again and again.
_CHANGED: Final = (
    "Operation cannot be fulfilled: the object has been modified; please apply your changes to "
    "the latest version and try again"
)
_PARTLY: Final = "other calls wrote while the call was answered; look before you try again"


class Lane(Enum):
    """Where a call is answered."""

    LOOP = "on the loop"
    LOOP_FIRST = "on the loop, and again in the worker thread where an expression may take long"
    THREAD = "in the worker thread"


class Lanes:
    """Chooses the lane of each call, and answers it there.

    Parameters
    ----------
    answer
        Answers a call without waiting: the chain.
    routes, store
        Tell how much a call reads.
    policies
        Any of them may evaluate expressions on a write.
    webhooks
        Any of them may have to be asked about a write.
    gathering
        Asks them.
    durability
        Notes the writes of the worker thread.
    """

    def __init__(
        self,
        answer: Callable[[Request], Reply],
        routes: Routes,
        store: Store,
        *,
        policies: tuple[StoredPolicies, ...],
        webhooks: Webhooks,
        gathering: Gathering,
        durability: Durability,
    ) -> None:
        self._answer = answer
        self._routes = routes
        self._store = store
        self._validating, self._mutating = policies
        self._webhooks = webhooks
        self._durability = durability
        self._cel_process = CelProcess()
        self.thread = WorkerThread()
        self.gathering = gathering

    def choose(self, request: Request) -> Lane:
        """Return the lane of a call; strangers are refused on the loop."""
        if request.user is None:
            return Lane.LOOP
        target = self._routes.find(request.path)
        answers = current_answers()
        is_long = answers is not None and answers.size_bytes > BODY_BYTES_MAX
        if is_long or takes_long(request, target, self._store):
            return Lane.THREAD
        if target is None or target.served.custom or self.may_ask(request):
            return Lane.LOOP_FIRST
        may_evaluate = self._validating.binding_shelf or self._mutating.binding_shelf
        return Lane.LOOP_FIRST if may_evaluate else Lane.LOOP

    def has_to_wait(self, request: Request) -> bool:
        """Whether a call on the loop has to wait until a snapshot is stored; leases never wait.

        Reads of objects wait, too: who sees a pod of a snapshot without its owner deletes it.
        """
        if self.thread.open.is_set() or request.user is None or is_lease(request):
            return False
        return self._routes.find(request.path) is not None

    def may_ask(self, request: Request) -> bool:
        """Whether webhooks may have to be asked for a call: to admit it, or to convert objects."""
        if self._routes.converts:
            return True
        return may_be_admitted(request) and any(self._webhooks.shelves)

    async def run(self, request: Request) -> Reply:
        """Answer a call, as often as it takes to have the answers of webhooks."""
        if self.may_ask(request):
            return await self.gathering.reply_to(request, partial(self._run, request))
        return await self._run(request)

    async def _run(self, request: Request) -> Reply:
        """Answer a call in its lane; without a thread there is one lane."""
        lane = self.choose(request) if self.thread.executor is not None else Lane.LOOP
        if lane is not Lane.THREAD and self.has_to_wait(request):
            await self.thread.until_open()
        if lane is Lane.LOOP:
            return self._answer(request)
        if lane is Lane.LOOP_FIRST:
            with running_on(LATER), suppress(TooLongHere):
                return self._answer(request)
        return await self._run_in_thread(request)

    async def _run_in_thread(self, request: Request) -> Reply:
        writes = self._durability.begin_in_thread()
        user = request.user.name if request.user else ""
        answers = current_answers()

        def work(call: LongCall) -> Reply:
            with answering_with(answers):
                return self._work(request, call, writes)

        reply = await self.thread.run(user, work)
        if request.method in READS:
            return reply
        return await self._durability.refusal_of(writes) or reply

    def _work(self, request: Request, call: LongCall, writes: ThreadWrites) -> Reply:
        """Answer a call, in the thread; again where another call has written what it has read."""
        self._durability.enter_thread(writes)
        for _ in range(TRIES_MAX):
            reads = Reads(call)
            try:
                with running_on(self._cel_process), noting(reads):
                    reply = self._answer(request)
            except StaleError:
                if reads.written:
                    return status_reply(internal(_PARTLY))
            except GoneError:
                return NOT_AWAITED
            else:
                if reply.status < HTTPStatus.INTERNAL_SERVER_ERROR or reads.stand():
                    return reply
                # What the call read changed while it read; that may be why it failed.
        return status_reply(StatusError(409, "Conflict", _CHANGED))

    def close(self) -> None:
        """End the thread and the process of slow expressions."""
        self.thread.close()
        self._cel_process.close()
