"""Watches a live cluster for a `Feed`: lists and watches, and never writes.

The one module of this room that awaits. Every call goes through a transport that lets no write out.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from moorage.api import resources
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import Clock
from moorage.base.rng import Streams
from moorage.client.first_lists import check_first_lists
from moorage.client.guard import GuardedTransport, WriteGuard
from moorage.client.reflector import Reflector
from moorage.client.reflectors import Reflectors
from moorage.client.transport import Transport
from moorage.service.assembly import POD_FIELDS, SUCCEEDED_FIELDS
from moorage.service.intake.lean_pods import trim_succeeded
from moorage.shadow.feed import Feed

_LOOK_SECONDS: Final = 0.1
_TICK_SECONDS: Final = 0.25


def _no_write() -> None:
    raise AssertionError("nothing is written beside a scheduler")


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """When to end.

    Parameters
    ----------
    seconds
        Time from the first lists on; None without a limit.
    decisions
        The number of comparisons, comparable or not; None without a limit.
    """

    seconds: float | None = None
    decisions: int | None = None


class Watch:
    """The watches of a live cluster.

    Parameters
    ----------
    transport
        Carries the calls; closed by its owner.
    feed
        Takes in what is seen.
    clock
        The time.
    streams
        Randomness of the watches.

    Attributes
    ----------
    feed
        As given.
    transport
        Lets reading calls out, and refuses every other.
    """

    def __init__(self, transport: Transport, feed: Feed, *, clock: Clock, streams: Streams) -> None:
        self.transport = GuardedTransport(transport, WriteGuard(_no_write))
        self.feed = feed
        reflectors = Reflectors(self.transport, clock=clock, streams=streams)
        self._failures: list[BaseException] = []
        self._owner = TaskOwner(lambda _name, error: self._failures.append(error))
        self._nodes = reflectors.reflector_of(resources.NODES, Node, feed.nodes)
        self._others = {
            name: reflectors.reflector_of(
                kind.resource, kind.type_, feed.others[name], optional=True
            )
            for name, kind in feed.beside.half.kinds.items()
        }
        self._pods = reflectors.reflector_of(resources.PODS, Pod, feed.pods, fields=POD_FIELDS)
        self._succeeded: dict[str, Reflector[Pod]] = {}
        if feed.beside.half.core.snapshot.groups.has_source:
            self._succeeded["pods that have succeeded"] = reflectors.reflector_of(
                resources.PODS,
                Pod,
                feed.beside.half.succeeded,
                fields=SUCCEEDED_FIELDS,
                trim=trim_succeeded,
            )

    async def start(self) -> None:
        """List everything, then begin to compare.

        Raises
        ------
        ApiError
            A list is forbidden; the message names the kinds.
        TransportError
            The server cannot be reached.
        """
        for name, reflector in self._all.items():
            self._owner.spawn(reflector.run(), name=f"reflector {name}")
        while not all(each.synced.is_set() for each in self._all.values()):
            self._refuse()
            await aio.sleep(_LOOK_SECONDS)
        self.feed.begin_comparing({name: each.known_objects for name, each in self._others.items()})

    async def follow(self, limits: Limits) -> None:
        """Watch until a limit is reached, or until cancelled."""
        passed = 0.0
        while not self._ended(limits, passed):
            await aio.sleep(_TICK_SECONDS)
            passed += _TICK_SECONDS
            if self._failures:
                raise self._failures[0]
            self.feed.tick()

    async def close(self) -> None:
        """End the watches."""
        await self._owner.cancel_all()

    def _ended(self, limits: Limits, passed: float) -> bool:
        if limits.seconds is not None and passed >= limits.seconds:
            return True
        return limits.decisions is not None and self.feed.tally.outcomes.total() >= limits.decisions

    def _refuse(self) -> None:
        """Raise where the server does not let us list."""
        if self._failures:
            raise self._failures[0]
        errors = {name: each.last_error for name, each in self._all.items()}
        check_first_lists(errors, reader="shadow")

    @property
    def _all(self) -> dict[str, Reflector[Any]]:
        """Every reflector by the plural of its kind: nodes first, so that pods find them."""
        kinds = self.feed.beside.half.kinds
        others = {kinds[name].resource.plural: each for name, each in self._others.items()}
        pods = {**self._succeeded, resources.PODS.plural: self._pods}
        return {resources.NODES.plural: self._nodes, **others, **pods}
