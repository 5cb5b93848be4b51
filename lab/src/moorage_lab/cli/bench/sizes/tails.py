"""``moorage bench tails``: the slow kinds of decisions, each at two sizes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import click

from moorage.cli.options import output_option, repeated_seed_option
from moorage_lab.bench.tails.cases import CASES

if TYPE_CHECKING:
    from moorage.cli.render import Form


def _epilog() -> str:
    width = max(len(name) for name in CASES)
    lines = []
    for name, case in CASES.items():
        small, large = case.sizes
        lines += [f"  {name:{width}}  {small:,} and {large:,} {case.counts}"]
        lines += [f"    {case.about}"]
    listed = "\n".join(lines)
    return f"""
\b
Cases, with their two sizes:
{listed}

\b
Examples:
  moorage bench tails                                all cases; some minutes
  moorage bench tails --case claims --case quota
  moorage bench tails --size small -o json           a quick look, for programs

\b
Plain pods take some 30 us each; a user feels the kinds above, because nothing else is decided
meanwhile. Only deciding is measured, in a process of its own for each size; nothing is written.
p50 is the median decision, p99 the time that 99 of 100 stay below, and max the slowest. The first
decision about claims reads all devices, so it is the slowest. A preemptor is decided twice: the
decision that finds its victims, and the one that gives it the node.

\b
The same seed gives the same placements: compare two versions by their digests first, then by
their times. For a comparison in turn: make bench-compare REF=main ARGS='tails --case claims'.
"""


@click.command("tails", epilog=_epilog())
@click.option(
    "--case",
    "names",
    type=click.Choice(list(CASES)),
    multiple=True,
    metavar="CASE",
    help="One of the cases below, repeatable. Default: all.",
)
@click.option(
    "--size",
    "which",
    type=click.Choice(["small", "large", "both"]),
    default="both",
    show_default=True,
    help="Which of the two sizes to measure.",
)
@output_option()
@repeated_seed_option
def bench_tails(
    *,
    names: tuple[str, ...],
    which: Literal["small", "large", "both"],
    output: Form,
    seed: int,
) -> None:
    """Measure the slow kinds of decisions: claims, preemption, quotas, gangs, unlike pods."""
    from moorage.cli.render import show
    from moorage_lab.bench.tails.report import as_json, as_lines
    from moorage_lab.bench.tails.run import measured

    places = {"small": (0,), "large": (1,), "both": (0, 1)}[which]
    work = [(name, CASES[name].sizes[place]) for name in names or CASES for place in places]
    tails = []
    for tail in measured(work, seed):
        counts = CASES[tail.case].counts
        p99_ms = tail.decision.p99_us / 1000
        click.echo(f"{tail.case} {tail.size:,} {counts}: p99 {p99_ms:.2f} ms", err=True)
        tails.append(tail)
    show(output, as_json(tails), text="\n".join(as_lines(tails)))
