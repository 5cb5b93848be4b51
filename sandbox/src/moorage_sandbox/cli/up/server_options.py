"""The options of ``moorage up`` for its API server, and the settings made from them."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import click

from moorage.cli.render import show_note

if TYPE_CHECKING:
    from moorage.base.process import Pace
    from moorage_sandbox.sandbox.settings import ServerSettings


_ALL = "all"


class ServerOptions(TypedDict):
    """The values of `server_options`, and what the scheduler's configuration asks for."""

    listen: str
    names: tuple[str, ...]
    port: int
    data: Path | None
    salvage: bool
    rbac: bool
    webhook: tuple[str, ...]
    no_controllers: str
    speed: float
    audit_log: Path | None
    version: str
    custom_kinds: list[str]


_OPTIONS = (
    click.option(
        "--listen",
        default="127.0.0.1",
        show_default=True,
        metavar="ADDRESS",
        help="Address or host name of this machine that the API server listens on, with TLS, and "
        "for whoever has credentials. The default is reachable from this machine only.",
    ),
    click.option(
        "--tls-san",
        "names",
        multiple=True,
        metavar="NAME",
        help="Another host name or address that clients reach it by, for its certificate; may be "
        "repeated.",
    ),
    click.option(
        "--port",
        type=click.IntRange(0, 65_535),
        default=0,
        metavar="PORT",
        help="Port of the API server; 0 (the default) takes a free one, "
        "with --data the one it had.",
    ),
    click.option(
        "--data",
        type=click.Path(path_type=Path, file_okay=False),
        default=None,
        metavar="DIR",
        help="Keep the cluster in DIR, and go on from what is there. A write is answered once it "
        "is on the disk.",
    ),
    click.option(
        "--salvage",
        is_flag=True,
        help="Where the files in --data DIR are damaged, keep what can be read, and tell what "
        "cannot; the damaged files are put aside in DIR.",
    ),
    click.option(
        "--rbac",
        is_flag=True,
        help="Allow users what roles grant them, as Kubernetes does; the scheduler is "
        "system:kube-scheduler then. Default: whoever has credentials may do everything.",
    ),
    click.option(
        "--webhook",
        multiple=True,
        metavar="NS/NAME=HOST:PORT",
        help="Ask the webhooks of the Service NAME in the namespace NS at HOST:PORT, where a "
        "program of yours listens; may be repeated. The annotation moorage.dev/webhook-address of "
        "a Service does the same.",
    ),
    click.option(
        "--no-controllers",
        is_flag=False,
        flag_value=_ALL,
        default="",
        metavar="NAMES",
        help="Leave these controllers to another program, by the names of kube-controller-manager, "
        "as in --no-controllers=job-controller,deployment-controller; all of them without NAMES.",
    ),
    click.option(
        "--audit-log",
        type=click.Path(path_type=Path, dir_okay=False),
        default=None,
        metavar="FILE",
        help="Append every call to FILE: who, what, when and the outcome, as lines of "
        "audit.k8s.io/v1 JSON.",
    ),
    click.option(
        "--speed",
        type=click.FloatRange(0, 1000),
        default=1.0,
        metavar="N",
        help="Let N seconds pass in one: for server, nodes, controllers and scheduler. Limits of "
        "calls stay real. With 0 time stops once the nodes are there, and `moorage time` steps it.",
    ),
)


def server_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options to a command."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def _webhook_addresses(texts: tuple[str, ...]) -> dict[str, str]:
    """Return HOST:PORT by NAMESPACE/NAME.

    Raises
    ------
    click.UsageError
        A text has another form.
    """
    if not texts:
        return {}
    from moorage_sandbox.apiserver.webhooks.addresses import read_address
    from moorage_sandbox.apiserver.webhooks.answers import HookError

    addresses = {}
    for each in texts:
        service, _, address = each.partition("=")
        namespace, slash, name = service.partition("/")
        try:
            read_address(address)
        except HookError:
            address = ""
        if not (namespace and slash and name and address) or "/" in name:
            raise click.UsageError(
                f"--webhook {each}: name a Service and where its program listens, as in "
                "--webhook kueue-system/kueue-webhook-service=127.0.0.1:9443"
            )
        addresses[service] = address
    return addresses


def _left_out(text: str) -> list[str]:
    """Return the names of controllers in an option's text.

    Raises
    ------
    click.UsageError
        There is no such controller.
    """
    if not text:
        return []
    from moorage_sandbox.controllers.names import NAMES

    if text == _ALL:
        return list(NAMES)
    chosen = text.split(",")
    unknown = [name for name in chosen if name not in NAMES]
    if unknown:
        raise click.UsageError(
            f"--no-controllers: no controller is named {', '.join(unknown)}; there are "
            f"{', '.join(NAMES)}"
        )
    return chosen


def server_settings(
    options: ServerOptions,
    nodes: list[dict[str, object]],
    seed: int,
    *,
    default_nodes: bool,
) -> ServerSettings:
    """Return the settings of the server process.

    Parameters
    ----------
    nodes
        Templates of its nodes.
    default_nodes
        Whether the nodes are the default; then a stored cluster keeps its own nodes.
    """
    from moorage_sandbox.sandbox.settings import ServerSettings

    data, speed, audit_log = options["data"], options["speed"], options["audit_log"]
    if options["salvage"] and data is None:
        raise click.UsageError("--salvage is about the directory that --data names")
    if 0 < speed < 1:
        raise click.UsageError(f"--speed {speed:g}: time stands still (0) or runs (1 and more)")
    return ServerSettings(
        listen=_one_address(options["listen"]),
        names=list(options["names"]),
        port=options["port"],
        nodes=nodes,
        nodes_of_new=default_nodes,
        seed=seed,
        data=str(data.absolute()) if data else "",
        salvage=options["salvage"],
        rbac=options["rbac"],
        webhooks=_webhook_addresses(options["webhook"]),
        no_controllers=_left_out(options["no_controllers"]),
        audit_log=str(audit_log.absolute()) if audit_log else "",
        version=options["version"],
        custom_kinds=options["custom_kinds"],
        pace=_pace(speed, data),
    )


def _pace(speed: float, data: Path | None) -> Pace:
    from moorage.base.clock import NS_PER_SECOND, SystemClock
    from moorage.base.process import Pace

    now_ns = SystemClock().now_ns()
    ahead_ns = 0
    if data is not None:
        from moorage_sandbox.sandbox.data_directory import newest_moment

        # If the cluster's time ran faster before, it continues from that time, at any speed.
        ahead_ns = max(0, newest_moment(data) - now_ns)
    if ahead_ns >= NS_PER_SECOND:
        ahead = timedelta(seconds=ahead_ns // NS_PER_SECOND)
        show_note(f"the cluster's time goes on {ahead} ahead of this machine's")
    if speed:
        return Pace(speed, now_ns, ahead_ns=ahead_ns)
    import tempfile

    from moorage.base.timeline import Timeline

    # Each process maps the file; `up` removes it at the end.
    descriptor, path = tempfile.mkstemp(prefix="moorage-time-")
    os.close(descriptor)
    Timeline.create_file(Path(path), now_ns + ahead_ns)
    return Pace(speed, now_ns, path, ahead_ns)


def _one_address(listen: str) -> str:
    """Refuse to listen on all addresses: a kubeconfig names one address."""
    try:
        everywhere = not listen or ipaddress.ip_address(listen).is_unspecified
    except ValueError:
        # A host name; listening fails if it is not a name of this machine.
        everywhere = False
    if everywhere:
        raise click.UsageError(
            f"--listen {listen}: name one address or host name of this machine, which is what the "
            "kubeconfig will say"
        )
    return listen
