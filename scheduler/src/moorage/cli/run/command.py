"""``moorage run``: the scheduler as a process of its own."""

from __future__ import annotations

import logging
import sys
from pathlib import Path
from typing import Any

import click

from moorage import __version__
from moorage.base.importing import without_collecting
from moorage.base.verbosity import level_of
from moorage.cli.options import (
    config_option,
    kubeconfig_option,
    log_from,
    plugin_option,
    seed_option,
)
from moorage.cli.render import show_note
from moorage.cli.run.flags import RunCommand, given_flags, kube_scheduler_flags, warnings
from moorage.cli.run.scheduler_options import (
    NOBODY,
    PAGE,
    RECORDS_BYTES,
    SchedulerOptions,
    Told,
)

_EPILOG = """
\b
Examples:
  moorage run --kubeconfig .moorage/kubeconfig
  moorage run --kubeconfig ~/.kube/config --config scheduler.yaml
  moorage run --config /etc/kubernetes/scheduler.yaml      in a pod, with its service account

\b
The kubeconfig is looked for in this order: --kubeconfig, clientConnection.kubeconfig of the
configuration, $KUBECONFIG, the service account of the pod, ~/.kube/config.

\b
Pods choose a scheduler by spec.schedulerName; give the profile in the configuration a
schedulerName of its own to run next to kube-scheduler.
"""


@click.command(cls=RunCommand, epilog=_EPILOG)
@kubeconfig_option
@config_option("KubeSchedulerConfiguration, the same file kube-scheduler reads.")
@plugin_option
@seed_option
@click.option(
    "-v",
    "--verbose",
    count=True,
    help="Say more on standard error: -v=2, 3, 5 or 10, as kube-scheduler.",
)
@kube_scheduler_flags
@click.option(
    "--records-bytes",
    type=click.IntRange(0),
    default=RECORDS_BYTES,
    show_default=True,
    metavar="BYTES",
    help="Memory for records of attempts, for `moorage explain --attempt`; 0: keep none.",
)
@click.option(
    "--record",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    metavar="FILE",
    help="Write the record of every attempt to FILE, as JSON lines; rotated at 64 MiB, 5 files.",
)
@click.option(
    "--dashboard",
    "page",
    is_flag=False,
    flag_value=PAGE,
    default="",
    metavar="[ADDRESS:PORT]",
    help=f"Serve the page for people; without a value on {PAGE}. Its login link is printed.",
)
@click.option("--page-acts", default="", hidden=True)
@click.option("--end-with-stdin", is_flag=True, hidden=True)
@click.option("--pace", type=(float, int, str, int), default=(1.0, 0, "", 0), hidden=True)
def run(
    *,
    kubeconfig: str,
    context: str,
    config: Path | None,
    plugins: tuple[str, ...],
    seed: int | None,
    verbose: int,
    end_with_stdin: bool,
    pace: tuple[float, int, str, int],
    **flags: Any,
) -> None:
    """Schedule the pods of an API server, until Ctrl-C or SIGTERM.

    It takes kube-scheduler's place: same API, same configuration, same decisions, conditions and
    Events, as far as it is built. It takes all of kube-scheduler's flags, too; those that have no
    effect are not listed here, and are warned of.
    """
    with without_collecting():
        from moorage.base.process import Ending, Pace, run_loop, until_ended
        from moorage.cli.run.scheduling import schedule, write_config
        from moorage.cli.run.standing import schedule_in_sandbox

    own = {name: flags.pop(name) for name in ("records_bytes", "record", "page", "page_acts")}
    given = given_flags(flags)
    # The lines of a sandbox's scheduler stand among those of its other parts: warnings only.
    level = logging.WARNING if end_with_stdin and not verbose else level_of(verbose)
    log_format = given.get("logging-format", "text")
    log_from(level, log_format=log_format, klog=not end_with_stdin)
    for line in warnings(given, has_config=config is not None):
        show_note(line)
    if given.get("version"):
        click.echo(f"moorage {__version__}")
        return
    options = SchedulerOptions(
        kubeconfig=kubeconfig,
        context=context,
        config=config,
        seed=seed,
        plugins=plugins,
        flags=given,
        verbosity=verbose,
        free_port=end_with_stdin,
        **own,
    )
    if "write-config-to" in given:
        write_config(options, Path(given["write-config-to"]))
        return

    chosen = Pace(*pace)
    # A child makes its imports while its server starts, and its parent reports the server's start.
    if end_with_stdin and not sys.stdin.buffer.readline():
        return

    clock = chosen.clock()

    async def main() -> None:
        ending = Ending(clock=clock)
        ending.listen()
        told = Told(_say_ready, click.echo, click.echo) if end_with_stdin else NOBODY
        work = (schedule_in_sandbox if end_with_stdin else schedule)(options, clock, told)
        await until_ended(work, ending, name="scheduler", child=end_with_stdin)

    run_loop(main(), chosen, clock)


def _say_ready() -> None:
    """Report to the parent that pods are being scheduled."""
    click.echo("ready")
