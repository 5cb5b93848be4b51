"""The command ``moorage fault-sim company``."""

from __future__ import annotations

import logging
import sys

import click

from moorage.cli.options import output_option
from moorage.cli.render import Form, show, show_note


@click.command(
    epilog="\b\nExamples:\n  moorage fault-sim company --worlds 100\n"
    "  moorage fault-sim company --worlds 1 --seed 39 -o json\n"
    "  moorage fault-sim company --wide --worlds 20\n"
)
@click.option(
    "--worlds",
    type=click.IntRange(min=1),
    default=100,
    show_default=True,
    metavar="N",
    help="Number of worlds; their seeds count up.",
)
@click.option("--seed", type=int, default=1, show_default=True, metavar="N", help="First seed.")
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    default=1,
    show_default=True,
    metavar="N",
    help="Number of processes.",
)
@click.option(
    "--wide",
    is_flag=True,
    help="Draw more features at once: all forms of groups, pods without owner, two profiles.",
)
@output_option()
def company(*, worlds: int, seed: int, jobs: int, wide: bool, output: Form) -> None:
    """Play small worlds with the real controllers, and judge what each costs in all."""
    from moorage_lab.cli.fault_sim.text import company_text
    from moorage_lab.fault_sim.company.series import report_of, series

    # Quotas and storms make programs complain, which says nothing here.
    logging.getLogger().addHandler(logging.NullHandler())
    played = []
    for world in series(range(seed, seed + worlds), jobs=jobs, wide=wide):
        played.append(world)
        for excess in world.excesses:
            show_note(f"seed {world.seed}: {excess.rule}: {excess.text}")
    report = report_of(played, wide=wide)
    show(output, report, text=lambda: company_text(report))
    if report.exceptions:
        sys.exit(1)
