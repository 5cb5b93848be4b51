"""Serves a page until its program ends: of a scheduler of this process, or of any source."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

import msgspec

from moorage.base.clock import Clock, SystemClock
from moorage.base.errors import UsageError
from moorage.base.rng import Streams
from moorage.cli.page.in_process import InProcess
from moorage.cli.page.objects import WithObjects
from moorage.cli.render import show_note
from moorage.cli.run.scheduler_options import SchedulerOptions
from moorage.cli.run.serving import answers_of
from moorage.client.http_transport import open_transport
from moorage.client.kubeconfig import find_access
from moorage.client.transport import Transport
from moorage.client.writes import Client
from moorage.dashboard.acts import Acts
from moorage.dashboard.doors import LinkDoor, OpenSource, TokenDoor
from moorage.dashboard.server import LOOPBACK, PagePlan, PageServer, login_link
from moorage.dashboard.source import Source
from moorage.dashboard.view import View
from moorage.service.process.health import BodyPage
from moorage.service.scheduler import Scheduler
from moorage.service.serving.tls import Pair, load_pair

_RIGHTS: Final = (
    "This page shows everything that the scheduler of {server} sees, with the scheduler's rights, "
    "to whoever opened its login link. It changes nothing."
)


async def show_page(
    options: SchedulerOptions,
    scheduler: Scheduler,
    clock: Clock,
    *,
    server: str,
    bodies: Mapping[str, BodyPage],
    transport: Transport,
    on_page: Callable[[str], None] | None,
) -> None:
    """Serve the page of a scheduler until cancelled.

    Parameters
    ----------
    options
        The address of the page, and whether it offers a sandbox's acts.
    scheduler
        The scheduler that answers.
    clock
        The scheduler's time.
    server
        The API server, for people.
    bodies
        The answers to questions with a body, by path.
    transport
        The scheduler's way to the API server, which Events and quotas are read by.
    on_page
        As `serve_page` has it.

    Raises
    ------
    UsageError
        As `serve_page`.
    """
    answers = InProcess(answers_of(scheduler, clock), bodies)
    plan = plan_of(options.page, title=server, rights=_RIGHTS.format(server=server))
    async with _administrator(options.page_acts) as its_transport:
        client = Client(its_transport or transport, rng=Streams().stream("page"))
        acts: Acts | None = None
        if its_transport is not None:
            from moorage.cli.page.acts import acts_of_sandbox

            acts = await acts_of_sandbox(its_transport, client)
            plan = msgspec.structs.replace(plan, title="sandbox", rights="")
        await serve_page(plan, WithObjects(answers, client), acts=acts, on_page=on_page)


async def serve_page(
    plan: PagePlan,
    source: Source,
    *,
    acts: Acts | None = None,
    on_page: Callable[[str], None] | None = None,
) -> None:
    """Serve a page, behind login links that work once, until cancelled.

    Parameters
    ----------
    plan
        What the page is about, and where it is served.
    source
        Answers the questions.
    acts
        The changes that the page of a sandbox offers.
    on_page
        Called with each login link; None reports them on standard error.

    Raises
    ------
    UsageError
        The address cannot be used.
    """
    clock = SystemClock()  # the page lives in real time, however fast the time of a sandbox is
    on_link = on_page or _note_link
    door = LinkDoor(View(source, clock), lambda token: on_link(login_link(page, token)))
    page = PageServer(plan, door, clock=clock, acts=acts)
    async with _started(page):
        await asyncio.Event().wait()


async def serve_to_viewers(
    plan: PagePlan, open_source: OpenSource, *, on_page: Callable[[str], None]
) -> None:
    """Serve a page to whoever has a token of the cluster, until cancelled.

    Parameters
    ----------
    plan
        What the page is about, and where it is served.
    open_source
        Opens the source that answers with the rights of a token.
    on_page
        Called with the address of the page.

    Raises
    ------
    UsageError
        The address cannot be used.
    """
    clock = SystemClock()
    page = PageServer(plan, TokenDoor(open_source, clock), clock=clock)
    async with _started(page):
        on_page(page.url)
        await asyncio.Event().wait()


def _note_link(link: str) -> None:
    show_note(f"page at {link} (the link works once)")


@asynccontextmanager
async def _administrator(kubeconfig: str) -> AsyncIterator[Transport | None]:
    """Open the way of a sandbox's administrator to its API server; None without a kubeconfig."""
    if not kubeconfig:
        yield None
        return
    clock = SystemClock()
    access = find_access(kubeconfig, context="", clock=clock)
    transport = open_transport(access, clock=clock, user_agent="moorage-page")
    try:
        yield transport
    finally:
        await transport.close()


@asynccontextmanager
async def _started(page: PageServer) -> AsyncIterator[None]:
    await page.start()
    try:
        yield
    finally:
        await page.close()


def plan_of(address: str, *, title: str, rights: str, option: str = "--dashboard") -> PagePlan:
    """Return what a page is about, and where it is served.

    Parameters
    ----------
    address
        ``ADDRESS:PORT``. Elsewhere than on loopback the page is served with TLS, by a certificate
        of its own.
    option
        The option that gives the address, for messages.

    Raises
    ------
    UsageError
        The address cannot be used.
    """
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isascii() and port.isdigit() and int(port) < 65536):
        raise UsageError(f"{option} {address}: write ADDRESS:PORT, such as 127.0.0.1:10270")
    host = host.strip("[]")
    tls = None if host in LOOPBACK else _own_tls(host)
    return PagePlan(title=title, rights=rights, address=host, port=int(port), tls=tls)


def _own_tls(host: str) -> ssl.SSLContext:
    from moorage.base.certificates import Authority

    pair = Authority(SystemClock()).server_pair((host, "localhost", "127.0.0.1", "::1"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    load_pair(context, Pair(pair.certificate, pair.key))
    return context
