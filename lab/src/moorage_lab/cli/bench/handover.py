"""``moorage bench handover``: replicas of one scheduler end, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from moorage.cli.options import DurationType, output_option, repeated_seed_option

if TYPE_CHECKING:
    from moorage.cli.render import Form

_EPILOG = """
\b
Examples:
  moorage bench handover                               20 rounds, three replicas, 1000 nodes
  moorage bench handover --rounds 200 --lease 6        200 rounds with a short lease
  moorage bench handover --nodes 20 --rounds 3 --rate 5 --lease 3

Starts an API server and replicas of `moorage run` with leader election. Pods come and go on nodes
that are nearly full. Each round sends one replica, most often the leader, SIGTERM, SIGKILL or
SIGSTOP (and SIGCONT some time later), and replaces it if it ends. The times come from the audit log
of the server. In the end every pod is bound, none was bound twice, no node ever had too much, and
no write arrived in the name of a lease that was over.

\b
Exit codes: 0 all of that is so, 1 something is not (FAULT lines say what), or a hand-over took
longer than promised (LATE lines): 1 s after SIGTERM, the lease and 5 s after SIGKILL.
"""


@click.command(epilog=_EPILOG)
@click.option("--rounds", type=click.IntRange(1), default=20, show_default=True, metavar="N")
@click.option("--nodes", type=click.IntRange(1), default=1000, show_default=True, metavar="N")
@click.option("--replicas", type=click.IntRange(2), default=3, show_default=True, metavar="N")
@click.option(
    "--rate",
    "pods_per_second",
    type=click.FloatRange(0, min_open=True),
    default=30.0,
    show_default=True,
    metavar="N",
    help="Pods created a second; as many are deleted.",
)
@click.option(
    "--lease",
    "lease_seconds",
    type=DurationType(3, whole=True),
    default="15s",
    show_default=True,
    metavar="DURATION",
    help="Duration of the lease; the other times of the election are in proportion.",
)
@click.option(
    "--stop",
    "stop_seconds",
    type=DurationType(above=True),
    default="30s",
    show_default=True,
    metavar="DURATION",
    help="Longest time for which a process is stopped.",
)
@output_option()
@repeated_seed_option
@click.pass_context
def handover(ctx: click.Context, /, *, output: Form, seed: int, **plan: Any) -> None:
    """End, stop and replace replicas of a scheduler while pods come and go."""
    from moorage.base.clock import SystemClock
    from moorage.base.process import run_loop
    from moorage.base.rng import Streams
    from moorage.cli.render import show
    from moorage_lab.bench.handover.plan import HandoverPlan
    from moorage_lab.bench.handover.run import HandoverRun

    run = HandoverRun(
        HandoverPlan(**plan),
        clock=SystemClock(),
        streams=Streams(seed),
        progress=lambda line: click.echo(line, err=True),
    )
    report = run_loop(run.run())
    show(output, report.as_json(), text="\n".join(report.as_lines()))
    ctx.exit(1 if report.faults or report.late else 0)
