"""A cluster that is only watched as the source of a page's answers: nothing is written.

The state is kept by the parts of a scheduler, which never decides. So every question has its answer
as from a running scheduler, but for what only the deciding scheduler knows: its queue and attempts.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Final

from moorage.base import aio
from moorage.base.clock import Clock
from moorage.base.errors import NotLeadingError, UsageError
from moorage.base.rng import Streams
from moorage.cli.page.in_process import InProcess
from moorage.cli.run.serving import Begun, answers_of, trying
from moorage.client.first_lists import check_first_lists
from moorage.client.guard import GuardedTransport, WriteGuard
from moorage.client.transport import Transport
from moorage.config.own import LoadedConfiguration
from moorage.dashboard.source import Source
from moorage.plugins.from_outside import with_plugins
from moorage.service.assembly import assemble
from moorage.service.questions.pages import body_pages
from moorage.service.scheduler import Scheduler

_LOOK_SECONDS: Final = 0.1


async def watch_and_serve(
    transport: Transport,
    loaded: tuple[LoadedConfiguration, Sequence[str]],
    clock: Clock,
    serve: Callable[[Source], Coroutine[Any, Any, None]],
) -> None:
    """Watch a cluster and serve its answers until cancelled.

    Parameters
    ----------
    transport
        Carries the calls. No write is sent.
    loaded
        The configuration, and the plugins from outside, by which explanations are computed.
    clock
        The time.
    serve
        Serves the answers, once the first lists are in.

    Raises
    ------
    UsageError
        The configuration has extenders, or a plugin cannot be loaded.
    MoorageError
        The server cannot be reached, or forbids to read.
    """
    config, plugins = loaded
    if config.scheduler.extenders:
        raise UsageError("the configuration has extenders, and a page calls none; leave them out")
    known = with_plugins(config, plugins)
    scheduler = assemble(
        known.config,
        known.registry,
        GuardedTransport(transport, WriteGuard(_no_write)),
        clock=clock,
        streams=Streams(),
        host="",
        elector=None,
    )
    tried, process, _estimator = trying(Begun(scheduler, config, tuple(plugins)), clock)

    async def served() -> None:
        await _first_lists(scheduler)
        await serve(InProcess(answers_of(scheduler, clock, tried), body_pages(tried)))

    try:
        await aio.together(scheduler.watch(), served())
    finally:
        await process.close()


async def _first_lists(scheduler: Scheduler) -> None:
    """Wait for the first lists.

    Raises
    ------
    MoorageError
        They will not come.
    """
    reflectors = scheduler.parts.reflectors
    while not scheduler.synced:
        check_first_lists({each.plural: each.last_error for each in reflectors}, reader="a page")
        await aio.sleep(_LOOK_SECONDS)


def _no_write() -> None:
    raise NotLeadingError("not sent: the page only reads")
