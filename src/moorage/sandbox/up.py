"""`moorage up`: starts the parts in order, shows what happens, ends everything.

server -> kubeconfig -> nodes -> scheduler -> first objects -> watch until told to end.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from moorage.api.event import Event
from moorage.api.pod import Pod
from moorage.api.resources import EVENTS, PODS, by_kind
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import Clock
from moorage.base.errors import ApiError, UsageError
from moorage.base.rng import Streams
from moorage.client.follow import Follower
from moorage.client.http_transport import HttpTransport
from moorage.client.kubeconfig import find_access
from moorage.client.reflector import Reflector
from moorage.client.transport import Transport
from moorage.client.writes import Client, JsonObject
from moorage.sandbox.lines import Started, View
from moorage.sandbox.parts import Parts
from moorage.sandbox.process import Ending, until_ended
from moorage.sandbox.progress import Progress
from moorage.sandbox.settings import SANDBOX_CONTEXT

_TICK_SECONDS = 0.25
# How long all pods must have been bound or explained to count as settled: longer than the
# scheduler needs to look again at pods an event has woken.
_SETTLED_SECONDS = 1.0


class UpPlan(msgspec.Struct, frozen=True, kw_only=True):
    """What to do once the parts are there.

    Parameters
    ----------
    kubeconfig
        Where to write the administrator's kubeconfig.
    scheduler_kubeconfig
        Where to write one for the scheduler; None where it uses the administrator's.
    objects
        To create first, unless the cluster was there before.
    scheduler
        Whether to start one.
    until_settled
        Whether to end by itself when every pod is bound or explained.
    seed
        Of the scheduler's random streams.
    watch
        Whether to follow pods and Events; without, there is nothing to show but the beginning.
    served
        The schedulerNames the scheduler serves; None when not known, so that no pod is said to
        wait in vain.
    """

    kubeconfig: Path
    scheduler_kubeconfig: Path | None = None
    objects: Sequence[JsonObject] = ()
    scheduler: bool = True
    until_settled: bool = False
    seed: int = 0
    watch: bool = True
    served: frozenset[str] | None = None


async def up(plan: UpPlan, parts: Parts, view: View, *, clock: Clock) -> None:
    """Run a cluster until a signal comes or, if the plan says so, everything is settled.

    Raises
    ------
    MoorageError
        A part failed; everything has ended.
    """
    ending = Ending(on_second=parts.kill)
    ending.listen()
    try:
        run = _Run(plan, parts, view, clock=clock)
        await until_ended(run.run(), ending, name="up")
    finally:
        await parts.stop()


class _Run:
    """One life of a cluster."""

    def __init__(self, plan: UpPlan, parts: Parts, view: View, *, clock: Clock) -> None:
        self._plan = plan
        self._parts = parts
        self._view = view
        self._clock = clock
        self._streams = Streams(plan.seed)
        self._progress = Progress(clock, view.change, served=plan.served)

    async def run(self) -> None:
        plan, parts = self._plan, self._parts
        report = await parts.start_server()
        write_private(plan.kubeconfig, report.kubeconfig)
        if plan.scheduler_kubeconfig is not None:
            write_private(plan.scheduler_kubeconfig, report.scheduler_kubeconfig)
        objects = () if report.restored else plan.objects
        access = find_access(str(plan.kubeconfig), clock=self._clock)
        transport = HttpTransport(access, user_agent="moorage-up")
        tasks = TaskOwner()
        # Their failures are raised below, so nobody needs to log them.
        quiet = TaskOwner(on_failure=lambda _name, _error: None)
        settled = False
        try:
            await parts.nodes_ready()
            self._view.started(
                Started(
                    report.url,
                    str(plan.kubeconfig.resolve()),
                    report.nodes,
                    plan.scheduler,
                    plan.seed,
                )
            )
            if plan.scheduler:
                await parts.start_scheduler()
            failed = quiet.spawn(parts.failed(), name="wait for failures")
            living = quiet.spawn(self._live(transport, tasks, objects), name="live")
            await asyncio.wait({failed, living}, return_when=asyncio.FIRST_COMPLETED)
            if failed.done():
                failed.result()
            living.result()
            settled = True
        finally:
            await quiet.cancel_all()
            await tasks.cancel_all()
            self._view.ended(self._progress, settled=settled)
            await transport.close()

    async def _watch(self, transport: Transport, tasks: TaskOwner) -> None:
        """Follow pods and Events; returns when the first lists are in."""
        pods = Reflector(
            transport,
            PODS,
            Pod,
            handler=Follower(self._progress.pod_seen, self._progress.pod_gone),
            clock=self._clock,
            rng=self._streams.stream("up/pods"),
        )
        events = Reflector(
            transport,
            EVENTS,
            Event,
            handler=Follower(self._progress.event_seen, self._progress.event_gone),
            clock=self._clock,
            rng=self._streams.stream("up/events"),
        )
        tasks.spawn(pods.run(), name="watch pods")
        tasks.spawn(events.run(), name="watch events")
        await pods.synced.wait()
        await events.synced.wait()

    async def _live(
        self, transport: Transport, tasks: TaskOwner, objects: Sequence[JsonObject]
    ) -> None:
        """Create the first objects, then look on until everything is settled, or for ever."""
        if self._plan.watch or self._plan.until_settled:
            await self._watch(transport, tasks)
        client = Client(transport, rng=self._streams.stream("up/client"))
        expected = await create_all(client, objects, self._view.message)
        while True:
            await aio.sleep(_TICK_SECONDS)
            self._view.tick(self._progress)
            if not self._plan.until_settled or self._progress.seen < expected:
                continue
            if self._progress.settled_seconds() >= _SETTLED_SECONDS:
                return


async def create_all(
    client: Client, objects: Sequence[JsonObject], complain: Callable[[str], None]
) -> int:
    """Create objects one after another; what is refused is told and left out.

    Returns
    -------
    int
        How many pods were created.
    """
    pods = 0
    for obj in objects:
        metadata = obj.get("metadata")
        names = metadata if isinstance(metadata, dict) else {}
        kind, version = str(obj.get("kind", "")), str(obj.get("apiVersion", ""))
        resource = by_kind(kind, version)
        if resource is None:
            complain(f"{version} {kind}: the sandbox does not serve this kind")
            continue
        namespace = str(names.get("namespace") or "default") if resource.namespaced else ""
        try:
            await client.create(resource, obj, namespace=namespace)
        except ApiError as error:
            complain(f"{kind} {names.get('name', '')}: {error}")
            continue
        pods += resource is PODS
    return pods


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner can read, making its directory.

    Raises
    ------
    UsageError
        It cannot be written there, or the file belongs to another cluster.
    """
    if not _ours(path):
        raise UsageError(
            f"{path} is a kubeconfig of another cluster, or something else; "
            "name another file with --kubeconfig-out"
        )
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            # A file that was there before keeps its mode otherwise.
            os.fchmod(descriptor, 0o600)
            file.write(text)
    except OSError as error:
        raise UsageError(
            f"cannot write the kubeconfig to {path}: {error.strerror}; "
            "name another file with --kubeconfig-out"
        ) from error


def _ours(path: Path) -> bool:
    """Whether a file may be overwritten: it is not there, or an earlier sandbox wrote it."""
    try:
        found = msgspec.json.decode(path.read_bytes())
    except msgspec.DecodeError:
        return not path.stat().st_size
    except OSError:
        return True  # writing will tell what is wrong
    return isinstance(found, dict) and found.get("current-context") == SANDBOX_CONTEXT
