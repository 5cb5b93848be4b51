"""``moorage top``: how full a cluster is."""

from __future__ import annotations

import shutil
import sys
from typing import TYPE_CHECKING, Any

import click

from moorage.cli.options import by_option, kubeconfig_option, output_option, rows_option

if TYPE_CHECKING:
    from moorage.cli.render import Form
    from moorage.cli.session import Session
    from moorage.service.questions.folding.folds import By
    from moorage_sandbox.cli.top.fullness import Fullness, Kind

_WATCH_SECONDS = 2
_EPILOG = """
\b
Examples:
  moorage top                          every node, by what its pods request
  moorage top namespaces -r nvidia.com/gpu
  moorage top pods --by none           pod by pod, instead of owner by owner
  moorage top pods -o json

\b
Nodes that are equally full are one row with a count; --by none has all.
FREE is the sum over all nodes, LARGEST FREE the most that one node has left. STRANDED is free on
nodes where cpu, memory or the number of pods is used to 95 % or more. For programs, cpu is in
cores and memory in bytes.
"""


@click.command(epilog=_EPILOG)
@click.argument("kind", type=click.Choice(["nodes", "pods", "namespaces"]), default="nodes")
@click.option(
    "-r",
    "--resource",
    "resources",
    multiple=True,
    metavar="NAME",
    help="What to count; may be repeated. Default: cpu, memory and the nodes' extended resources.",
)
@click.option("-w", "--watch", is_flag=True, help="Show it again every two seconds, until Ctrl-C.")
@by_option("group", "reason")
@rows_option(50)
@output_option("wide", "name")
@kubeconfig_option
def top(
    *,
    kind: Kind,
    by: By,
    limit: int,
    resources: tuple[str, ...],
    watch: bool,
    output: Form,
    kubeconfig: str,
    context: str,
) -> None:
    """Show how full the nodes are: requested, free, stranded.

    Counts what bound pods request, as the scheduler does; `kubectl top` counts what they measure.
    """
    from moorage.base import aio
    from moorage.cli.render import show
    from moorage.cli.rows.text import Shown, terminal_width
    from moorage.cli.session import run_session
    from moorage_sandbox.cli.top.text import plain, tables

    async def work(session: Session) -> None:
        while True:
            state = await _read(session, resources, kind)
            if watch and output in {"text", "wide", "name"}:
                click.clear()
            sandbox = session.cluster.sandbox
            autoscale = "" if sandbox is None else sandbox.autoscale
            counted = f"nodes: {state.nodes}, autoscaled {autoscale}\n" if autoscale else ""
            shown = None if output == "wide" else Shown(by, limit, terminal_width())
            text = counted + tables(state, kind, shown)
            names = [f"{kind[:-1]}/{row.name}" for row in state.rows]
            show(output, plain(state, autoscale), text=_fitting(text, watch=watch), names=names)
            if not watch:
                return
            await aio.sleep(_WATCH_SECONDS)

    try:
        run_session(work, kubeconfig=kubeconfig, context=context)
    except KeyboardInterrupt:
        if not watch:
            raise


def _fitting(text: str, *, watch: bool) -> str:
    """Return a text that fits the terminal where it is shown anew; the first lines say most."""
    lines = text.splitlines()
    if not watch or not sys.stdout.isatty():
        return text
    height = shutil.get_terminal_size().lines - 1
    if len(lines) <= height:
        return text
    left_out = len(lines) - height + 1
    return "\n".join([*lines[: height - 1], f"and {left_out} more; -o json has all"])


async def _read(session: Session, resources: tuple[str, ...], kind: Kind) -> Fullness:
    from moorage.api.codec import from_dict
    from moorage.api.node import Node
    from moorage.api.pod import Pod
    from moorage.api.resources import NODES, PODS
    from moorage_sandbox.cli.top.fullness import fullness

    nodes: Any = (await session.client.list(NODES))["items"]
    pods: Any = (await session.client.list(PODS))["items"]
    return fullness(
        [from_dict(Node, {**each, "kind": "Node"}) for each in nodes],
        [from_dict(Pod, {**each, "kind": "Pod"}) for each in pods],
        resources,
        kind,
    )
