"""``moorage scale``: the number of nodes of a running sandbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from moorage.cli.command_group import CommandGroup
from moorage.cli.options import kubeconfig_option, output_option, shape_option
from moorage_sandbox.cli.scale.auto import auto

if TYPE_CHECKING:
    from moorage.cli.render import Form
    from moorage.cli.session import Session
    from moorage.nodeshapes.shapes import Shape
    from moorage_sandbox.sandbox.scaling.resize import Resized

_EPILOG = """
\b
Examples:
  moorage scale nodes 200                        a cluster of 200 nodes
  moorage scale nodes 202 --shape p4d.24xlarge   the new ones with eight GPUs each
  moorage scale nodes 20                         the newest empty nodes go first
"""


@click.group(cls=CommandGroup, epilog=_EPILOG)
def scale() -> None:
    """Change the number of nodes of a running sandbox."""


scale.add_command(auto)


@scale.command(epilog=_EPILOG)
@click.argument("count", type=click.IntRange(0, 20_000))
@shape_option
@click.option(
    "--force", is_flag=True, help="Remove nodes with pods, too; their pods are lost with them."
)
@output_option("name")
@kubeconfig_option
def nodes(
    *,
    count: int,
    shapes: tuple[str, ...],
    force: bool,
    output: Form,
    kubeconfig: str,
    context: str,
) -> None:
    """Give the cluster COUNT nodes, and wait until new ones are ready.

    Empty nodes are removed before others, and new nodes before old ones. Pods of DaemonSets and
    finished pods do not count. Nodes with pods are removed with --force only.
    """
    from moorage.cli.render import show
    from moorage.cli.session import run_session
    from moorage.nodeshapes.shapes import parse_shape

    wanted = [parse_shape(text) for text in shapes]
    resized = run_session(
        lambda session: _resize(session, count, wanted, force=force),
        kubeconfig=kubeconfig,
        context=context,
        waits=True,
        writes=True,
    )
    changed = (*resized.added, *resized.removed)
    show(output, resized, text=_changes_text(resized), names=[f"node/{name}" for name in changed])


async def _resize(session: Session, count: int, shapes: list[Shape], *, force: bool) -> Resized:
    from moorage_sandbox.cli.scale.server import check_sandbox
    from moorage_sandbox.sandbox.scaling.resize import resize

    await check_sandbox(session)
    return await resize(session.client, count, shapes=shapes, force=force)


def _changes_text(resized: Resized) -> str:
    changes = [("added", resized.added), ("removed", resized.removed)]
    told = "; ".join(f"{word} {len(names)}: {_span(names)}" for word, names in changes if names)
    return f"{resized.nodes} nodes, {told or 'as before'}"


def _span(names: tuple[str, ...]) -> str:
    """Return the names, or the first and the last of many."""
    return ", ".join(names) if len(names) <= 3 else f"{names[0]} ... {names[-1]}"
