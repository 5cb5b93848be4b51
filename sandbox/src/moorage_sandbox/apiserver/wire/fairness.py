"""Fairness between users: the order in which calls are answered, and a limit for each user.

Place in the flow: `http` asks here about each call once its caller is known, and `worker_thread`
about each long call. A simple form of kubernetes v1.36 API Priority and Fairness. Health and
watches never wait. Leases have turns of their own. All other calls are answered in turn, one for
each user.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

from moorage.kinds.status import too_many_requests
from moorage_sandbox.apiserver.wire.requests import Query, Request

CALLS_OF_USER_MAX = 400
"""Most calls of one user under way at once: kube-apiserver's --max-requests-inflight."""

CALLS_MAX = 600
"""Most calls of all users, --max-mutating-requests-inflight added; beyond it, each user has an
equal share."""

# How many calls are answered between two polls of the network (a guess: about 5 ms), and how many
# of them may be calls for leases while others wait.
_CALLS_IN_A_ROW = 8
_LEASES_IN_A_ROW = 4
# A call that is answered in the turn in which it comes counts as this part of a call: it takes a
# quarter of the time.
_AT_ONCE = 0.25
_RETRY_AFTER_SECONDS = 1
_LEASES = "/apis/coordination.k8s.io/"
_HEALTH = ("/healthz", "/livez", "/readyz")
_HEALTH_CHECKS = tuple(f"{path}/" for path in _HEALTH)
_RESOURCES = ("/api/", "/apis/")


class FairQueue:
    """Waits for turns: each user's calls in order of arrival, users one after the other."""

    def __init__(self) -> None:
        # The loop of all waiting calls: asking for the running loop takes a system call.
        self._loop: asyncio.AbstractEventLoop | None = None
        # The user with the next turn comes first; turns with their costs.
        self._waiting: OrderedDict[str, deque[tuple[asyncio.Future[None], float]]] = OrderedDict()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    async def wait_turn(self, user: str, pass_on: Callable[[], object]) -> None:
        """Wait for a turn; ``pass_on`` is called if the turn comes to a caller just gone."""
        future = self.enter(user)
        try:
            await future
        except asyncio.CancelledError:
            if not future.cancelled():
                pass_on()
            raise

    def enter(self, user: str, cost: float = 1) -> asyncio.Future[None]:
        """Return a turn to wait for; whoever waits no longer cancels it."""
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = self._loop.create_future()
        self._waiting.setdefault(user, deque()).append((future, cost))
        return future

    def next(self) -> float:
        """Give the next turn and return its cost; 0 where no call waits."""
        while self._waiting:
            user, turns = self._waiting.popitem(last=False)
            future, cost = turns.popleft()
            if turns:
                self._waiting[user] = turns
            if not future.done():  # The call of a caller that has gone is over.
                future.set_result(None)
                return cost
        return 0


class FairMutex:
    """A lock for one call at a time; users get it in turn."""

    def __init__(self) -> None:
        self._queue = FairQueue()
        self._locked = False

    async def acquire(self, user: str) -> None:
        """Wait until the caller holds the lock."""
        if self._locked:
            await self._queue.wait_turn(user, self.release)
        self._locked = True

    def release(self) -> None:
        """Release the lock to the next call."""
        self._locked = self._queue.next() > 0


class Fairness:
    """Counts the calls under way and gives turns."""

    def __init__(self) -> None:
        # (user, whether leases) -> calls under way; users without calls are left out.
        self._under_way: dict[tuple[str, bool], int] = {}
        self._count = 0
        self._leases = FairQueue()
        self._others = FairQueue()
        # Calls answered since the last poll of the network, and whether a poll is scheduled.
        self._answered = 0.0
        self._round_due = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def under_way(self, call: Request) -> AbstractContextManager[None]:
        """Count a call while it is being read and answered, in the context that is returned.

        Raises
        ------
        StatusError
            429: the user has too many calls under way, or exceeds its share of all calls.
        """
        return _EXEMPT if _is_exempt(call) else _UnderWay(self, (_user(call), is_lease(call)))

    def enter(self, key: tuple[str, bool]) -> None:
        """Count a call of a (user, whether for a lease); refuse it where there are too many.

        Raises
        ------
        StatusError
            429.
        """
        own = self._under_way.get(key, 0)
        share = CALLS_MAX // (len(self._under_way) + (own == 0))
        if own >= CALLS_OF_USER_MAX or (self._count >= CALLS_MAX and own >= share):
            text = "too many requests, please try again later"
            raise too_many_requests(text, retry_after_seconds=_RETRY_AFTER_SECONDS, causes=())
        self._under_way[key] = own + 1
        self._count += 1

    def leave(self, key: tuple[str, bool]) -> None:
        """Count a call no more."""
        self._count -= 1
        self._under_way[key] -= 1
        if not self._under_way[key]:
            del self._under_way[key]

    async def turn(self, call: Request) -> None:
        """Wait until a call may be answered; at once while there are few."""
        if _is_exempt(call) or self._has_turn(1):
            return
        self._look_soon()
        await self._queue(call).wait_turn(_user(call), _nothing)

    def turn_at_once(self, call: Request) -> asyncio.Future[None] | None:
        """Return the turn of a small call that needs no task; None for a call that has its turn."""
        if self._has_turn(_AT_ONCE):
            return None
        self._look_soon()
        return self._queue(call).enter(_user(call), _AT_ONCE)

    def _queue(self, call: Request) -> FairQueue:
        return self._leases if is_lease(call) else self._others

    def _has_turn(self, cost: float) -> bool:
        if self._answered + cost > _CALLS_IN_A_ROW or self._leases or self._others:
            return False
        self._answered += cost
        self._look_soon()
        return True

    def _look_soon(self) -> None:
        if not self._round_due:
            self._round_due = True
            if self._loop is None:
                self._loop = asyncio.get_running_loop()
            self._loop.call_soon(self._round)

    def _round(self) -> None:
        """Give the turns of one round; calls that arrive meanwhile are in the next round."""
        self._round_due = False
        self._answered = 0.0
        while self._answered < _CALLS_IN_A_ROW:
            lease = self._leases.next() if self._answered < _LEASES_IN_A_ROW else 0
            cost = lease or self._others.next() or self._leases.next()
            if not cost:
                break
            self._answered += cost
        if self._answered:
            self._look_soon()


class _UnderWay:
    """The context of one counted call."""

    # Every call has one, and a generator costs four times as much.
    __slots__ = ("_fairness", "_key")

    def __init__(self, fairness: Fairness, key: tuple[str, bool]) -> None:
        self._fairness = fairness
        self._key = key

    def __enter__(self) -> None:
        self._fairness.enter(self._key)

    def __exit__(self, *raised: object) -> None:
        self._fairness.leave(self._key)


_EXEMPT = nullcontext()


def _nothing() -> None:
    """Pass on nothing: a lost turn is one of many."""


def _user(call: Request) -> str:
    return call.user.name if call.user is not None else ""


def is_lease(call: Request) -> bool:
    """Whether a call is about leases, which have turns of their own."""
    return call.path.startswith(_LEASES)


def _is_exempt(call: Request) -> bool:
    """Whether a call never waits: health, and streams, which have bounds of their own.

    Only a call without a body: reading it takes memory. Only where there is something to watch: a
    description of all kinds is not answered faster because its caller asks to watch.
    """
    if call.method not in ("GET", "HEAD"):
        return False
    path, headers = call.path, call.headers
    if not (path in _HEALTH or path.startswith(_HEALTH_CHECKS)):
        watches = bool(call.query) and path.startswith(_RESOURCES)
        if not (watches and Query(call.query).flag("watch")):
            return False
    return headers.get("content-length", "0") == "0" and "transfer-encoding" not in headers
