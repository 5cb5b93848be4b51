"""The command: schedulers in turn, round by round, and a table of their medians."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Final

import click
import msgspec

from moorage.base.clock import SystemClock
from moorage.base.errors import MoorageError, UsageError
from moorage.base.process import run_loop
from moorage.base.rng import Streams
from moorage.client.http_transport import open_transport
from moorage.client.kubeconfig import find_access
from moorage.client.writes import Client
from moorage_lab.bench.catalogue import WORKLOADS, Size
from tools.compare.drained import Backlog, Drained

_EPILOG = """
\b
Examples:
  python -m tools.compare --kubeconfig admin.conf \\
      --scheduler kube-scheduler=/opt/kube/kube-scheduler --scheduler 'moorage=moorage run'
  python -m tools.compare --kubeconfig admin.conf --workload pod-affinity --pods 5000 ...

\b
The API server must have no nodes, no pods and no other scheduler: etcd and kube-apiserver alone, or
`moorage up --nodes 0 --empty --no-scheduler`. The nodes are objects without a kubelet. So start
kube-apiserver as scheduler_perf does, with
--disable-admission-plugins=ServiceAccount,TaintNodesByCondition, and no kube-controller-manager.
"""
_WORKLOADS: Final = ("basic", "pod-affinity", "pod-anti-affinity")


@click.command(epilog=_EPILOG)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, exists=True, dir_okay=False, resolve_path=True),
    required=True,
    metavar="FILE",
    help="An API server of your own, with all rights.",
)
@click.option(
    "--scheduler",
    "schedulers",
    multiple=True,
    required=True,
    metavar="NAME=COMMAND",
    help="A scheduler that takes kube-scheduler's flags; may be repeated.",
)
@click.option(
    "--workload",
    type=click.Choice(_WORKLOADS),
    default="basic",
    show_default=True,
    help="The pods, as in scheduler_perf. All of them wait before a scheduler starts.",
)
@click.option("--nodes", type=click.IntRange(1), default=5000, show_default=True, metavar="N")
@click.option("--pods", type=click.IntRange(2), default=10_000, show_default=True, metavar="N")
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True, metavar="N")
@click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True
)
def compare(
    *,
    kubeconfig: Path,
    schedulers: tuple[str, ...],
    workload: str,
    nodes: int,
    pods: int,
    rounds: int,
    output: str,
) -> None:
    """Compare schedulers on one API server: pods a second, and processor time.

    In each round each scheduler places the same backlog, one after another. Pods and nodes are
    deleted at the end.
    """
    commands = [_named(each) for each in schedulers]
    clock, streams = SystemClock(), Streams(1)
    access = find_access(str(kubeconfig), context="", clock=clock)

    async def main() -> list[Drained]:
        transport = open_transport(access, clock=clock, user_agent="moorage-compare")
        client = Client(transport, rng=streams.stream("client"))
        made = WORKLOADS[workload].workload(Size(nodes, 0, pods))
        backlog, results = Backlog(made, client, clock=clock, streams=streams), []
        try:
            await backlog.prepare()
            try:
                for number in range(1, rounds + 1):
                    for name, command in commands:
                        result = await backlog.drain(name, command, kubeconfig)
                        click.echo(f"round {number}: {_line(result)}", err=True)
                        results.append(result)
            finally:
                await backlog.remove()
        finally:
            await transport.close()
        return results

    try:
        results = run_loop(main())
    except MoorageError as error:
        click.echo(f"error: {error}", err=True)
        sys.exit(2 if isinstance(error, UsageError) else 1)
    if output == "json":
        click.echo(json.dumps(msgspec.to_builtins(results), indent=2))
    else:
        click.echo("\n".join(table(results)))


def _named(text: str) -> tuple[str, str]:
    name, sign, command = text.partition("=")
    if not (sign and name and command):
        raise click.UsageError(f"--scheduler {text}: write NAME=COMMAND")
    return name, command


def _line(result: Drained) -> str:
    return (
        f"{result.scheduler} placed {result.placed} of {result.pods} pods, "
        f"{result.rate:.0f} a second, {result.cpu_seconds:.1f} s of CPU"
    )


def table(results: Sequence[Drained]) -> list[str]:
    """Return the medians of each scheduler, in Markdown, with the least and the greatest rate."""
    lines = ["| Scheduler | Pods/s | CPU, s | Placed |", "|---|---|---|---|"]
    for name in dict.fromkeys(each.scheduler for each in results):
        own = [each for each in results if each.scheduler == name]
        rates = [each.rate for each in own]
        spread = f"{median(rates):.0f} ({min(rates):.0f} to {max(rates):.0f})"
        cpu = median(each.cpu_seconds for each in own)
        placed = f"{min(each.placed for each in own)} of {own[0].pods}"
        lines.append(f"| {name} | {spread} | {cpu:.1f} | {placed} |")
    return lines


if __name__ == "__main__":
    compare()
