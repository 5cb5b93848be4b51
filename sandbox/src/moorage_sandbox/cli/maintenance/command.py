"""``moorage cordon``, ``uncordon`` and ``drain``: take nodes out of service, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from moorage.cli.completing import complete_nodes
from moorage.cli.options import DurationType, kubeconfig_option

if TYPE_CHECKING:
    from moorage.cli.session import Session

_node_names = click.argument(
    "names", nargs=-1, required=True, metavar="NODE...", shell_complete=complete_nodes
)


@click.command(epilog="\b\nExamples:\n  moorage cordon node-01\n  moorage cordon node-01 node-02\n")
@_node_names
@kubeconfig_option
def cordon(*, names: tuple[str, ...], kubeconfig: str, context: str) -> None:
    """Mark nodes unschedulable: their pods stay, and no new pods come."""
    _run(names, unschedulable=True, kubeconfig=kubeconfig, context=context)


@click.command(epilog="\b\nExamples:\n  moorage uncordon node-01\n")
@_node_names
@kubeconfig_option
def uncordon(*, names: tuple[str, ...], kubeconfig: str, context: str) -> None:
    """Mark nodes schedulable again."""
    _run(names, unschedulable=False, kubeconfig=kubeconfig, context=context)


_DRAIN_EPILOG = """
\b
Examples:
  moorage drain node-01 --ignore-daemonsets
  moorage drain node-01 --ignore-daemonsets --delete-emptydir-data --force --timeout 5m
  moorage what-if --drain node-01            what would happen, without doing it
"""


@click.command(epilog=_DRAIN_EPILOG)
@_node_names
@click.option("--ignore-daemonsets", is_flag=True, help="Let the pods of DaemonSets stay.")
@click.option("--delete-emptydir-data", is_flag=True, help="Evict pods with an emptyDir, too.")
@click.option("--force", is_flag=True, help="Evict pods without a controller, too.")
@click.option(
    "--grace-period",
    type=DurationType(whole=True),
    default=None,
    metavar="DURATION",
    help="Time to stop. Default: what each pod asks for.",
)
@click.option(
    "--timeout",
    type=DurationType(),
    default="0s",
    metavar="DURATION",
    help="Give up after this time; 0 waits without end (default).",
)
@kubeconfig_option
def drain(
    *, names: tuple[str, ...], timeout: float, kubeconfig: str, context: str, **flags: Any
) -> None:
    """Cordon nodes, evict their pods, and wait until the pods are gone.

    A budget that refuses an eviction is asked again every five seconds.
    """
    from moorage_sandbox.cli.maintenance.drain import DrainOptions, drain_node

    options = DrainOptions(timeout_seconds=timeout, **flags)

    async def work(session: Session) -> None:
        for name in names:
            await _set_schedulable(session, name, unschedulable=True)
            await drain_node(session, name, options, click.echo)
            click.echo(f"node/{name} drained")

    _in_session(work, kubeconfig, context)


def _run(names: tuple[str, ...], *, unschedulable: bool, kubeconfig: str, context: str) -> None:
    async def work(session: Session) -> None:
        for name in names:
            await _set_schedulable(session, name, unschedulable=unschedulable)

    _in_session(work, kubeconfig, context)


def _in_session(work: Any, kubeconfig: str, context: str) -> None:
    from moorage.cli.session import run_session

    run_session(work, kubeconfig=kubeconfig, context=context, writes=True)


async def _set_schedulable(session: Session, name: str, *, unschedulable: bool) -> None:
    """Change ``spec.unschedulable`` of a node, and say so as kubectl does."""
    from moorage.api.resources import NODES

    word = "cordoned" if unschedulable else "uncordoned"
    node: Any = await session.client.get(NODES, name)
    if bool(node["spec"].get("unschedulable")) == unschedulable:
        click.echo(f"node/{name} already {word}")
        return
    body = msgspec.json.encode({"spec": {"unschedulable": True if unschedulable else None}})
    await session.client.patch(NODES, name, body)
    click.echo(f"node/{name} {word}")
