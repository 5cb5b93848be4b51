"""``moorage nodes``: fake nodes for any API server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moorage.cli.command_group import CommandGroup
from moorage.cli.options import (
    output_option,
    seed_option,
    server_option,
    shape_option,
    start_logging,
    verbose_option,
)

if TYPE_CHECKING:
    from moorage.api.node import Node
    from moorage.cli.render import Form
    from moorage.nodeshapes.templates import NodeTemplate

_EPILOG = """
\b
Examples:
  moorage nodes --kubeconfig FILE --count 50
  moorage nodes --kubeconfig FILE --nodes-from big.yaml
  moorage nodes --kubeconfig FILE --count 10 --prefix gpu --shape cpu=96,memory=1Ti,gpu=8
  moorage nodes --kubeconfig FILE --adopt type=kwok
  moorage nodes shapes               the instance types that --shape knows

\b
Pods bound to these nodes pass through the phases without running anything. Annotations say how:
  moorage.dev/run-seconds: "30"   its containers end after 30 seconds
  moorage.dev/exit-code: "1"      ... with this exit code
  moorage.dev/start-seconds, ready-seconds, stop-seconds and others
"""


_SHAPES_EPILOG = """
\b
Examples:
  moorage nodes shapes
  moorage nodes shapes -o wide       with the vendor's page of each size
  moorage up --nodes 4 --shape p4d.24xlarge

\b
A node has the whole size: allocatable equals capacity, as nothing is kept for the kubelet.
"""


@click.group(
    cls=CommandGroup,
    epilog=_EPILOG,
    invoke_without_command=True,
    subcommand_metavar="[COMMAND]",
)
@server_option
@click.option(
    "--count",
    type=click.IntRange(1, 20_000),
    default=None,
    metavar="N",
    help="How many nodes, of 8 cpu and 32Gi each, in three zones.",
)
@click.option(
    "--nodes-from",
    type=click.Path(path_type=Path),
    default=None,
    metavar="FILE",
    help="Nodes as written in FILE instead.",
)
@click.option(
    "--prefix", default="node", show_default=True, metavar="WORD", help="Names: WORD-1, WORD-2 ..."
)
@click.option(
    "--adopt",
    default="",
    metavar="SELECTOR",
    help="Play nodes that others made, too, where a label selector holds for the labels or the "
    "annotations of the node: type=kwok, or kwok.x-k8s.io/node=fake.",
)
@shape_option
@seed_option
@verbose_option
@click.pass_context
def nodes(  # noqa: PLR0913 - one parameter an option
    ctx: click.Context,
    *,
    kubeconfig: str,
    context: str,
    count: int | None,
    nodes_from: Path | None,
    prefix: str,
    adopt: str,
    shapes: tuple[str, ...],
    seed: int | None,
    verbose: int,
) -> None:
    """Play kubelet for fake nodes of an API server, until Ctrl-C or SIGTERM.

    The nodes register themselves, renew their leases and take bound pods to Running. They stay
    in the server when this ends.
    """
    if ctx.invoked_subcommand is not None:
        return
    from moorage.base.clock import SystemClock
    from moorage.base.process import Ending, run_loop, until_ended
    from moorage.base.rng import Streams
    from moorage.cli.session import check_server
    from moorage.client.http_transport import HttpTransport
    from moorage.client.kubeconfig import find_access
    from moorage_sandbox.sandbox.server import play_nodes

    start_logging(verbose)
    adopted = _adopted_by(adopt)
    templates = _templates(count, nodes_from, prefix, shapes, adopts=adopted is not None)
    clock = SystemClock()
    streams = Streams(seed)
    access = find_access(kubeconfig, context=context, clock=clock)

    def ready() -> None:
        others = f", nodes with {adopt} are played" if adopt else ""
        click.echo(
            f"{len(templates)} nodes are registered at {access.server}{others} "
            f"(seed {streams.seed})"
        )

    async def play() -> None:
        # Agents retry for ever; a mistake in the kubeconfig should be reported at once.
        await check_server(access, clock)
        transport = HttpTransport(access, user_agent="moorage-nodes")
        try:
            await play_nodes(
                transport, templates, clock=clock, streams=streams, on_ready=ready, adopt=adopted
            )
        finally:
            await transport.close()

    async def main() -> None:
        ending = Ending()
        ending.listen()
        await until_ended(play(), ending, name="nodes")

    run_loop(main())


def _adopted_by(selector: str) -> Callable[[Node], bool] | None:
    """Return whether a node of another client is played; None without a selector.

    Raises
    ------
    click.UsageError
        The selector cannot be read.
    """
    if not selector:
        return None
    from moorage.api.selectors import parse_label_selector

    try:
        wanted = parse_label_selector(selector)
    except ValueError as error:
        raise click.UsageError(f"--adopt {selector}: {error}") from error

    def adopted(node: Node) -> bool:
        return wanted.matches({**node.metadata.annotations, **node.metadata.labels})

    return adopted


def _templates(
    count: int | None,
    nodes_from: Path | None,
    prefix: str,
    shapes: tuple[str, ...],
    *,
    adopts: bool,
) -> list[NodeTemplate]:
    """Return the templates of the wanted nodes.

    Raises
    ------
    click.UsageError
        The options name no nodes, or exclude each other.
    """
    if count is None and nodes_from is None and not shapes and not adopts:
        raise click.UsageError(
            "say how many nodes with --count, or which ones with --nodes-from or --adopt"
        )
    if count is not None and nodes_from is not None:
        raise click.UsageError("--count and --nodes-from exclude each other; keep one")
    if shapes and nodes_from is not None:
        raise click.UsageError("--shape and --nodes-from exclude each other; keep one")
    from moorage.nodeshapes.shapes import parse_shape, shaped_nodes
    from moorage.nodeshapes.templates import default_nodes, load_nodes

    if nodes_from is not None:
        return load_nodes(nodes_from)
    if shapes:
        return shaped_nodes([parse_shape(text) for text in shapes], count, prefix=prefix)
    return default_nodes(count or 0, prefix=prefix)


@nodes.command("shapes", epilog=_SHAPES_EPILOG)
@output_option("wide")
def list_shapes(*, output: Form) -> None:
    """List the instance types that --shape knows, with what they have."""
    from moorage.cli.render import Columns, show
    from moorage.nodeshapes.instance_types import GPU, instance_types

    known = list(instance_types().values())
    headings = ["name", "cpu", "memory", "gpu", "cloud"]
    columns = [
        [each.name for each in known],
        *([each.resources.get(key, "0") for each in known] for key in ("cpu", "memory", GPU)),
        [each.cloud for each in known],
    ]
    if output == "wide":
        headings.append("page")
        columns.append([each.page for each in known])
    rows = list(zip(*columns, strict=True))
    show(output, known, text="\n".join(Columns(headings).lines(rows)))
