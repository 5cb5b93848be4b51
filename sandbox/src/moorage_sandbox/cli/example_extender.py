"""``moorage example-extender``: a scheduler extender to try, to copy and to change."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moorage.cli.options import DurationType, start_logging, verbose_option

if TYPE_CHECKING:
    from moorage_sandbox.sandbox.example_extender import Fault

_FAULTS = ("slow", "broken", "garbage", "silent", "lying")

_EPILOG = """
\b
Examples:
  moorage example-extender --port 8888
  moorage up --config examples/extender/scheduler.yaml       in another terminal
  kubectl label node node-01 example.com/maintenance=planned  no new pods go there
  kubectl label node node-02 example.com/power=green          pods go there first

\b
  moorage example-extender --kubeconfig .moorage/kubeconfig   knows the cluster itself: for
                                                              nodeCacheCapable, and to bind
  moorage example-extender --fault slow --delay 10            what does httpTimeout do?

\b
The source is the module moorage_sandbox.sandbox.example_extender. GET /stats counts calls and
connections.
Faults: slow (answers after --delay), broken (500), garbage (no JSON), silent (hangs up),
lying (names nodes nobody asked about).
"""


@click.command("example-extender", epilog=_EPILOG)
@click.option("--address", default="127.0.0.1", show_default=True, metavar="HOST")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    default=8888,
    show_default=True,
    metavar="PORT",
    help="0 takes a free one, which is printed.",
)
@click.option(
    "--tls-cert-file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Certificate, PEM: serve HTTPS.",
)
@click.option(
    "--tls-private-key-file", type=click.Path(path_type=Path), metavar="FILE", help="Its key, PEM."
)
@click.option(
    "--kubeconfig",
    default="",
    metavar="FILE",
    help="Follow the nodes and pods of an API server, and bind there. Default: do neither.",
)
@click.option("--fault", type=click.Choice(_FAULTS), default=None, help="Misbehave like this.")
@click.option(
    "--delay",
    type=DurationType(),
    default="10s",
    show_default=True,
    metavar="DURATION",
    help="How slow is slow.",
)
@verbose_option
def example_extender(
    *,
    address: str,
    port: int,
    tls_cert_file: Path | None,
    tls_private_key_file: Path | None,
    kubeconfig: str,
    fault: Fault | None,
    delay: float,
    verbose: int,
) -> None:
    """Serve a small scheduler extender, until Ctrl-C or SIGTERM.

    It refuses nodes labelled example.com/maintenance, prefers nodes labelled
    example.com/power=green and spares pods labelled example.com/keep=true.
    """
    from moorage.base.process import Ending, run_loop, until_ended

    start_logging(verbose)
    tls = _tls(tls_cert_file, tls_private_key_file)

    async def main() -> None:
        ending = Ending()
        ending.listen()
        work = _serve(address, port, tls=tls, kubeconfig=kubeconfig, fault=fault, delay=delay)
        await until_ended(work, ending, name="extender")

    run_loop(main())


async def _serve(
    address: str,
    port: int,
    *,
    tls: ssl.SSLContext | None,
    kubeconfig: str,
    fault: Fault | None,
    delay: float,
) -> None:
    import asyncio

    from moorage.base.clock import SystemClock
    from moorage.base.rng import Streams
    from moorage.client.http_transport import HttpTransport
    from moorage.client.kubeconfig import find_access
    from moorage_sandbox.sandbox.example_extender import Cluster, ExampleExtender, ExtenderServer

    clock = SystemClock()
    transport = cluster = None
    if kubeconfig:
        transport = HttpTransport(
            find_access(kubeconfig, clock=clock), user_agent="moorage-example-extender"
        )
        cluster = Cluster(transport, clock=clock, streams=Streams())
    server = ExtenderServer(ExampleExtender(cluster), fault=fault, delay_seconds=delay)
    try:
        click.echo(f"urlPrefix: {await server.start(address=address, port=port, tls=tls)}")
        if cluster is None:
            await asyncio.Event().wait()
        else:
            await cluster.follow()
    finally:
        await server.stop()
        if transport is not None:
            await transport.close()


def _tls(certificate: Path | None, key: Path | None) -> ssl.SSLContext | None:
    from moorage.base.errors import UsageError

    if certificate is None and key is None:
        return None
    if certificate is None or key is None:
        raise UsageError("--tls-cert-file and --tls-private-key-file are given both or not at all")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"{certificate}, {key}: {error.strerror or error}") from error
    return context
