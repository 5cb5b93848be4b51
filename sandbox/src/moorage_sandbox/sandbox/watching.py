"""Looks at a running sandbox from another process: its pods, and whether they are settled."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.errors import MoorageError
from moorage.base.rng import Streams
from moorage_sandbox.sandbox.onlooker import Onlooker
from moorage_sandbox.sandbox.progress import Change, PodState, Progress

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from moorage.base.clock import Clock

_LOOK_SECONDS = 0.1
_NAMED_MAX = 5


@asynccontextmanager
async def watched(
    kubeconfig: Path, served: Collection[str] | None, *, clock: Clock
) -> AsyncIterator[Progress]:
    """Follow the pods of a sandbox while the context lasts.

    Parameters
    ----------
    kubeconfig
        Address and credentials.
    served
        The schedulerNames that are served; None if that is not known.
    """
    progress = Progress(clock, _ignore, served=served)
    tasks = TaskOwner()
    onlooker = Onlooker(kubeconfig, progress, clock=clock, streams=Streams(), tasks=tasks)
    try:
        await onlooker.watch()
        progress.nodes_counted(await onlooker.count_nodes())
        yield progress
    finally:
        await tasks.cancel_all()
        await onlooker.close()


async def until_settled(progress: Progress, *, check: Callable[[], None]) -> None:
    """Wait until every pod is bound or explained, and those with a node have had time to start.

    Parameters
    ----------
    check
        Called a few times a second; raises if waiting is in vain.
    """
    while not progress.is_at_rest():
        check()
        await aio.sleep(_LOOK_SECONDS)


async def settled_within(
    progress: Progress, seconds: float, *, check: Callable[[], None] = lambda: None
) -> None:
    """Wait until every pod is bound or explained, for a limited time.

    Pods that have a node are given time to start, as far as the limit allows.

    Raises
    ------
    MoorageError
        The time is over; the message names pods.
    """
    try:
        async with asyncio.timeout(seconds):
            await until_settled(progress, check=check)
    except TimeoutError as error:
        if progress.is_settled():
            return
        raise MoorageError(_unsettled(progress)) from error


def _unsettled(progress: Progress) -> str:
    names = [each.pod for each in progress.waiting if each.state is PodState.PENDING]
    more = f" and {len(names) - _NAMED_MAX} more" if len(names) > _NAMED_MAX else ""
    if not names:
        return "the time is over, and pods still change"
    told = ", ".join(names[:_NAMED_MAX])
    return f"the time is over, and these pods are neither bound nor explained: {told}{more}"


def _ignore(change: Change) -> None:
    del change
