"""Serves the page of any cluster: finds what answers, and says whose rights the page has."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import click
import msgspec

from moorage.base.clock import Clock, SystemClock
from moorage.base.errors import KubeconfigError, UsageError
from moorage.base.process import Ending, run_loop, until_ended
from moorage.base.rng import Streams
from moorage.cli.ask import is_sandbox, scheduler_access
from moorage.cli.cluster_choice import choose_cluster
from moorage.cli.page.by_token import AGENT, source_of_viewer
from moorage.cli.page.objects import WithObjects
from moorage.cli.page.remote import Remote
from moorage.cli.page.serving import plan_of, serve_page, serve_to_viewers
from moorage.cli.page.watching import watch_and_serve
from moorage.cli.question_target import QuestionTarget
from moorage.cli.render import show_note
from moorage.cli.served_configuration import check_same_cluster
from moorage.client.auth import ServerAccess
from moorage.client.http_transport import HttpTransport
from moorage.client.leaders.finding import has_leader
from moorage.client.transport import Transport
from moorage.client.writes import Client
from moorage.config.load import load_config
from moorage.config.own import LoadedConfiguration
from moorage.dashboard.server import PagePlan
from moorage.dashboard.source import Source
from moorage.service.serving.tls import FilePair, ServerTls, TlsRules

_RIGHTS: Final = (
    "This page shows everything that {seen}, with the rights of {whose}, to whoever opened its "
    "login link. It changes nothing."
)
_OWN_RIGHTS: Final = "This page shows what the user of your token may see. It changes nothing."


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The options of the command, as a person gave them."""

    address: str
    config: Path | None = None
    plugins: Sequence[str] = ()
    to: QuestionTarget
    by_token: bool = False
    certificate: Path | None = None
    key: Path | None = None

    def plan(self, *, title: str = "", rights: str = "") -> PagePlan:
        """Return what the page is about, and where it is served.

        Raises
        ------
        UsageError
            The address or the certificate cannot be used.
        """
        plan = plan_of(self.address, title=title, rights=rights, option="--address")
        if self.certificate is None or self.key is None:
            return plan
        flags = "--tls-cert-file and --tls-private-key-file"
        tls = ServerTls(FilePair(self.certificate, self.key, flags=flags), TlsRules())
        return msgspec.structs.replace(plan, tls=tls.context)


def show_cluster(wanted: Wanted) -> None:
    """Serve the page until a signal comes.

    Raises
    ------
    UsageError
        The configuration, a plugin or the address cannot be used.
    MoorageError
        The server cannot be reached, or forbids to read.
    """
    loaded = load_config(wanted.config)
    wanted.plan()  # a fault is reported at once
    check_same_cluster(wanted.to)
    clock = SystemClock()

    async def main() -> None:
        ending = Ending()
        ending.listen()
        await until_ended(_served(wanted, loaded, clock), ending, name="page")

    run_loop(main())


async def _served(wanted: Wanted, loaded: LoadedConfiguration, clock: Clock) -> None:
    to, computed = wanted.to, bool(wanted.config or wanted.plugins)
    if wanted.by_token:
        await _to_viewers(wanted)
        return
    if to.is_named and computed:
        raise UsageError(
            "--scheduler and --lease ask a running scheduler; --config and --plugin compute "
            "here: leave one of them out"
        )
    if to.is_named or (is_sandbox(to) and not computed):
        await _of_scheduler(wanted)
        return
    access = choose_cluster(to.kubeconfig, to.context, clock=clock).access
    transport = HttpTransport(access, user_agent=AGENT)
    try:
        if not computed and await has_leader(transport):
            await _of_scheduler(wanted)
            return
        sentence = f"a scheduler of {access.server} would see"

        async def serve(source: Source) -> None:
            objects = _with_objects(source, transport)
            await _shown(wanted, objects, access, sentence, watches=True)

        await watch_and_serve(transport, (loaded, wanted.plugins), clock, serve)
    finally:
        await transport.close()


async def _to_viewers(wanted: Wanted) -> None:
    """Serve to each viewer what its token may see."""
    to = wanted.to
    if wanted.config or wanted.plugins:
        raise UsageError(
            "--login token asks a running scheduler, with the rights of each viewer; --config and "
            "--plugin compute here: leave one of them out"
        )
    if to.token:
        raise UsageError("--login token asks with the token of each viewer: leave --token out")
    server = choose_cluster(to.kubeconfig, to.context).access
    plan = wanted.plan(title=server.server, rights=_OWN_RIGHTS)
    await serve_to_viewers(
        plan,
        lambda token: source_of_viewer(to, server, token),
        on_page=lambda url: click.echo(f"page at {url}, for tokens of {server.server}"),
    )


async def _of_scheduler(wanted: Wanted) -> None:
    """Serve the answers of the scheduler that is named, or of the sandbox's."""
    async with scheduler_access(wanted.to) as (access, path, title):
        transport = HttpTransport(access, user_agent=AGENT)
        try:
            async with _api_server(wanted.to) as server:
                source: Source = Remote(transport, path)
                if server is not None:
                    source = _with_objects(source, server)
                await _shown(wanted, source, access, f"{title} sees")
        finally:
            await transport.close()


@asynccontextmanager
async def _api_server(to: QuestionTarget) -> AsyncIterator[Transport | None]:
    """Open the way to the API server; None where no kubeconfig is found."""
    try:
        access = choose_cluster(to.kubeconfig, to.context).access
    except KubeconfigError:
        yield None
        return
    transport = HttpTransport(access, user_agent=AGENT)
    try:
        yield transport
    finally:
        await transport.close()


def _with_objects(source: Source, transport: Transport) -> WithObjects:
    return WithObjects(source, Client(transport, rng=Streams().stream("page")))


async def _shown(
    wanted: Wanted, source: Source, access: ServerAccess, sentence: str, *, watches: bool = False
) -> None:
    whose = wanted.to.kubeconfig or "the kubeconfig"
    rights = _RIGHTS.format(seen=sentence, whose=f"the user of {whose}")
    if wanted.to.scheduler.startswith("http"):
        rights = _RIGHTS.format(seen=sentence, whose="--token")
    plan = wanted.plan(title=access.server, rights=rights)
    plan = msgspec.structs.replace(plan, watches=watches)
    if watches:
        show_note(f"watching {access.server}: no scheduler of moorage is asked")
    await serve_page(plan, source, on_page=_show_link)


def _show_link(link: str) -> None:
    click.echo(f"page at {link} (the link works once)")
