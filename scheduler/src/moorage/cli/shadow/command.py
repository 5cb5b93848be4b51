"""``moorage shadow``: decides next to the scheduler of a live cluster, and writes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from moorage.cli.options import (
    DurationType,
    config_option,
    emulation_options,
    gates_option,
    groups_option,
    kubeconfig_option,
    output_option,
    plugin_option,
)

if TYPE_CHECKING:
    from moorage.cli.render import Form

_EPILOG = """
\b
Examples:
  moorage shadow --config packing.yaml --for 10m
  moorage shadow --plugin mine.py:spread_out --until-pods 500 -o json
  moorage shadow --config new.yaml --as default-scheduler=packing --to decisions.jsonl
  moorage shadow --for 1h                  moorage's default profile next to kube-scheduler
  moorage shadow --groups                  next to `moorage run --groups`

\b
Ctrl-C ends it with the report, as --for and --until-pods do.

\b
Exit codes:
  0  all decisions that could be compared agree, or there were none
  1  some differ; or it failed
  2  bad input: a flag, the configuration, a plugin, a kubeconfig
"""


@click.command(epilog=_EPILOG)
@config_option("The KubeSchedulerConfiguration to compare. Default: the default profile.")
@plugin_option
@click.option(
    "--as",
    "served",
    multiple=True,
    metavar="NAME[=PROFILE]",
    help="Decide about the pods with this schedulerName by this profile of the configuration, or "
    "by its first. Default: each profile serves its own name.",
)
@click.option(
    "--for",
    "seconds",
    type=DurationType(above=True),
    default=None,
    metavar="DURATION",
    help="End after, such as 10m.",
)
@click.option(
    "--until-pods",
    type=click.IntRange(min=1),
    default=None,
    metavar="N",
    help="End after this many decisions.",
)
@click.option(
    "--to",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    metavar="FILE",
    help="Write each comparison to a file as well, one JSON object a line.",
)
@click.option(
    "--own-course/--no-own-course",
    default=True,
    show_default=True,
    help="Whether to follow the course that the cluster would take with the configuration.",
)
@click.option(
    "--seed",
    type=click.IntRange(min=0),
    default=0,
    show_default=True,
    metavar="NUMBER",
    help="Seed of the draws among equally good nodes.",
)
@groups_option
@gates_option
@emulation_options
@output_option()
@kubeconfig_option
@click.pass_context
def shadow(  # noqa: PLR0913 - one parameter for each option
    ctx: click.Context,
    /,
    *,
    config: Path | None,
    plugins: tuple[str, ...],
    served: tuple[str, ...],
    seconds: float | None,
    until_pods: int | None,
    to: Path | None,
    own_course: bool,
    seed: int,
    groups: bool,
    gates: str,
    version: str,
    oldest: str,
    output: Form,
    kubeconfig: str,
    context: str,
) -> None:
    """Compare a configuration with the scheduler of a live cluster; nothing is written.

    Each pod that the real scheduler binds is decided about by the configuration, on the state just
    before. The report tells how often both agree, where they differ and which plugin makes the
    difference, and how full the cluster would be. Needed rights: get, list and watch.
    """
    from moorage.cli.render import show
    from moorage.cli.shadow.running import Wanted, run_shadow
    from moorage.cli.shadow.text import report_text

    report = run_shadow(
        Wanted(
            config=config,
            version=version,
            oldest=oldest,
            gates=gates,
            groups=groups,
            plugins=plugins,
            served=served,
            seconds=seconds,
            decisions=until_pods,
            to=to,
            follows_course=own_course,
            seed=seed,
            kubeconfig=kubeconfig,
            context=context,
        )
    )
    show(output, report, text=lambda: report_text(report))
    if report.differ:
        ctx.exit(1)
