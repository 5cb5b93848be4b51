"""``moorage run``: the scheduler as a process of its own."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import click

from moorage import __version__
from moorage.base.importing import without_collecting
from moorage.base.verbosity import V0, level_of, tell
from moorage.cli.options import (
    config_option,
    groups_option,
    kubeconfig_option,
    log_from,
    plugin_option,
    seed_option,
)
from moorage.cli.render import show_note
from moorage.cli.run.flags import RunCommand, flags_of, kube_scheduler_flags, warnings
from moorage.cli.run.scheduler_options import PAGE, RECORDS_BYTES, SchedulerOptions

_log = logging.getLogger(__name__)

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
@groups_option
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
def run(
    *,
    kubeconfig: str,
    context: str,
    config: Path | None,
    plugins: tuple[str, ...],
    seed: int | None,
    verbose: int,
    **flags: Any,
) -> None:
    """Schedule the pods of an API server, until Ctrl-C or SIGTERM.

    It takes kube-scheduler's place: same API, same configuration, same decisions, conditions and
    Events, as far as it is built. It takes all of kube-scheduler's flags, too; those that have no
    effect are not listed here, and are warned of.
    """
    with without_collecting():
        from moorage.base.clock import SystemClock
        from moorage.base.process import Ending, run_loop, until_ended
        from moorage.cli.run.scheduling import schedule, write_config

    own = {name: flags.pop(name) for name in ("groups", "records_bytes", "record", "page")}
    values = flags_of(flags)
    log_format = values.get("logging-format", "text")
    log_from(level_of(verbose), log_format=log_format, klog=True)
    for line in warnings(values, has_config=config is not None):
        show_note(line)
    if values.get("version"):
        click.echo(f"moorage {__version__}")
        return
    options = SchedulerOptions(
        kubeconfig=kubeconfig,
        context=context,
        config=config,
        seed=seed,
        plugins=plugins,
        flags=values,
        verbosity=verbose,
        **own,
    )
    if "write-config-to" in values:
        write_config(options, Path(values["write-config-to"]))
        return

    async def main() -> None:
        ending = Ending()
        ending.listen()
        await until_ended(schedule(options, SystemClock()), ending, name="scheduler")
        if ending.signalled:
            # By now the lease is released, as when kube-scheduler writes this line.
            tell(_log, V0, "Requested to terminate, exiting")

    run_loop(main())
