"""Keeps what the page shows up to date while somebody looks, and what changed for each viewer.

Once a second the source is asked what changed. Every viewer gets the same bytes, so ten viewers
cost the scheduler what one costs. Without viewers nothing is asked.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from moorage.base.aio import real_sleep
from moorage.base.clock import NS_PER_SECOND, Clock
from moorage.base.errors import MoorageError
from moorage.dashboard.source import Answered, Source

_LOOK_SECONDS: Final = 1.0
# A look at a large cluster takes long, so the next one waits: looks take a twenty-fifth at most.
_REST_FACTOR: Final = 24
_CHANGES_MAX: Final = 60  # changes; a viewer that is further behind begins anew
# Viewers hear as often as this, whatever changes and however long a look takes. A browser notices
# by silence alone that a connection is gone without a word.
_BEAT_SECONDS: Final = 5.0
_PODS_OF_A_LANE: Final = "200"
_DECISIONS: Final = 200


class _Cluster(msgspec.Struct, rename="camel"):
    version: str
    whole: bool
    time: str
    scheduling: bool
    nodes: dict[str, msgspec.Raw]


class _Queue(msgspec.Struct):
    sizes: dict[str, int]
    pods: list[dict[str, Any]]
    groups: list[dict[str, Any]]


class _Decisions(msgspec.Struct):
    last: int
    decisions: list[dict[str, Any]]


class Shown(msgspec.Struct, rename="camel", omit_defaults=True):
    """The message to a viewer: everything, or the changes.

    Parameters
    ----------
    version
        Counts the changes.
    whole
        Whether it replaces everything that the viewer has.
    time
        When the source answered.
    scheduling
        Whether the scheduler schedules.
    nodes, gone
        The nodes that changed, as ``/cluster`` tells them, and the names of those that are gone.
    sizes
        The sizes of the queue.
    pods, left
        The waiting pods that changed, by uid, and the uids of those that do not wait any more.
    groups
        The incomplete groups.
    decisions
        The newest decisions, newest first.
    trouble
        Why nothing newer is known; empty while the source answers.
    """

    version: int = 0
    whole: bool = False
    time: str = ""
    scheduling: bool = True
    nodes: dict[str, msgspec.Raw] = {}
    gone: list[str] = []
    sizes: dict[str, int] | None = None
    pods: dict[str, dict[str, Any]] = {}
    left: list[str] = []
    groups: list[dict[str, Any]] | None = None
    decisions: list[dict[str, Any]] = []
    trouble: str = ""

    @property
    def empty(self) -> bool:
        """Whether nothing changed."""
        told = (self.nodes, self.gone, self.pods, self.left, self.decisions)
        return not any(told) and self.sizes is None and self.groups is None


class Feed:
    """The content of the page.

    Parameters
    ----------
    source
        Is asked.
    clock
        Real time: how long a look takes.
    """

    def __init__(self, source: Source, clock: Clock) -> None:
        self._source = source
        self._clock = clock
        self._at = ""
        self._shown = Shown(whole=True, sizes={}, groups=[])
        self._changes: deque[tuple[int, bytes]] = deque(maxlen=_CHANGES_MAX)
        self._news = asyncio.Event()
        self._wanted = asyncio.Event()
        self._looking = asyncio.Lock()
        self._viewers = 0
        self._last_decision = 0

    @property
    def version(self) -> int:
        """The number of the newest change."""
        return self._shown.version

    @property
    def time(self) -> str:
        """When the source answered last; viewers are told where nothing else changes."""
        return self._shown.time

    @contextmanager
    def viewer(self) -> Iterator[None]:
        """Look for changes as long as the context lasts."""
        self._viewers += 1
        self._wanted.set()
        try:
            yield
        finally:
            self._viewers -= 1
            if not self._viewers:
                self._wanted.clear()

    async def run(self) -> None:
        """Look for changes while there are viewers, until cancelled."""
        while True:
            await self._wanted.wait()
            began_ns = self._clock.monotonic_ns()
            await self.look()
            took_seconds = (self._clock.monotonic_ns() - began_ns) / NS_PER_SECOND
            await real_sleep(max(_LOOK_SECONDS, _REST_FACTOR * took_seconds))

    async def beat(self) -> None:
        """Let viewers hear from time to time, until cancelled; `after` then returns."""
        while True:
            await self._wanted.wait()
            await real_sleep(_BEAT_SECONDS)
            self._wake()

    async def whole(self) -> bytes:
        """Return everything, as it is now unless somebody looks at it anyway."""
        if not self._viewers or not self.version:
            await self.look()
        return msgspec.json.encode(self._shown)

    async def after(self, version: int) -> Sequence[bytes] | None:
        """Wait for changes after a version; nothing from time to time, None for a viewer too late.

        Parameters
        ----------
        version
            The newest change that the viewer has.
        """
        if version == self.version:
            await self._news.wait()
        if not self.version - len(self._changes) <= version <= self.version:
            return None
        return [change for number, change in self._changes if number > version]

    async def look(self) -> None:
        """Ask what changed, and tell the viewers."""
        async with self._looking:
            try:
                change = await self._new_facts()
            except MoorageError as error:
                change = Shown(trouble=str(error))
            self._publish(change)

    def _publish(self, change: Shown) -> None:
        shown = self._shown
        if change.empty and change.trouble == shown.trouble:
            return
        shown.version += 1
        shown.trouble = change.trouble
        change.version = shown.version
        self._changes.append((change.version, msgspec.json.encode(change)))
        self._wake()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()

    # --- what changed ---------------------------------------------------------------------------

    async def _new_facts(self) -> Shown:
        """Ask, take the answers in, and return what is new in them."""
        cluster = _read(await self._source.ask("/cluster", {"since": self._at}), _Cluster)
        queue = _read(await self._source.ask("/queue", {"limit": _PODS_OF_A_LANE}), _Queue)
        change = Shown(time=cluster.time, scheduling=cluster.scheduling)
        self._shown.time, self._shown.scheduling = cluster.time, cluster.scheduling
        self._take_nodes(cluster, change)
        self._take_queue(queue, change)
        await self._take_decisions(change)
        self._at = cluster.version
        return change

    def _take_nodes(self, cluster: _Cluster, change: Shown) -> None:
        known = self._shown.nodes
        for name, node in cluster.nodes.items():
            if bytes(known.get(name, b"")) != bytes(node):
                known[name] = change.nodes[name] = msgspec.Raw(bytes(node))
        if cluster.whole:
            change.gone = [name for name in known if name not in cluster.nodes]
            for name in change.gone:
                del known[name]

    def _take_queue(self, queue: _Queue, change: Shown) -> None:
        shown = self._shown
        pods = {str(each["uid"]): each for each in queue.pods}
        for each in queue.pods:
            each.pop("secondsLeft", None)  # the viewer counts down to `until` by itself
        change.pods = {uid: pod for uid, pod in pods.items() if shown.pods.get(uid) != pod}
        change.left = [uid for uid in shown.pods if uid not in pods]
        shown.pods = pods
        if queue.sizes != shown.sizes:
            shown.sizes = change.sizes = queue.sizes
        if queue.groups != shown.groups:
            shown.groups = change.groups = queue.groups

    async def _take_decisions(self, change: Shown) -> None:
        since = str(self._last_decision)
        answered = await self._source.ask("/decisions", {"since": since, "limit": str(_DECISIONS)})
        if answered.status == 404:
            return  # a scheduler without records
        answer = _read(answered, _Decisions)
        shown = self._shown
        # Bindings end after their decisions, so the newest ones are told again until they ended.
        open_now = [each["number"] for each in answer.decisions if _is_open(each)]
        known = {each["number"]: each for each in shown.decisions}
        change.decisions = [each for each in answer.decisions if known.get(each["number"]) != each]
        self._last_decision = min(open_now, default=answer.last + 1) - 1
        known |= {each["number"]: each for each in answer.decisions}
        shown.decisions = [known[number] for number in sorted(known, reverse=True)[:_DECISIONS]]


def _is_open(decision: dict[str, Any]) -> bool:
    return decision["outcome"] == "bind" and not decision.get("end")


def _read(answered: Answered, kind: type[Any]) -> Any:
    """Return an answer as an object.

    Raises
    ------
    MoorageError
        There is none, or it cannot be read.
    """
    if answered.status != 200:
        raise MoorageError(answered.message)
    try:
        return msgspec.json.decode(answered.body, type=kind)
    except msgspec.MsgspecError as error:
        raise MoorageError(f"the scheduler's answer cannot be read: {error}") from error
