"""``moorage bench growth``: the time of a pod against the size of the cluster."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from moorage.cli.options import output_option, repeated_seed_option
from moorage_lab.bench.growth.axes import AXES

if TYPE_CHECKING:
    from moorage.cli.render import Form

_EPILOG = """
\b
Examples:
  moorage bench growth                                  everything; some minutes, up to 10 GiB
  moorage bench growth --axis nodes --axis shapes
  moorage bench growth --most 10000 --plot growth.svg   no size above 10,000

Only deciding is measured: queue, decision, cache; nothing is written. Each size has a process of
its own. Sizes of one axis are compared by the mean time of a pod. The same seed gives the same
digests. A picture needs matplotlib: pip install 'moorage[plot]'.
"""


@click.command("growth", epilog=_EPILOG)
@click.option(
    "--axis",
    "axes",
    type=click.Choice(list(AXES)),
    multiple=True,
    metavar="AXIS",
    help="nodes, bound, shapes, waiting, churn, labels or groups, repeatable. Default: all.",
)
@click.option(
    "--most", type=click.IntRange(1), metavar="N", help="Leave out the sizes above this one."
)
@click.option(
    "--plot",
    "picture",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Draw the growth, too: .svg, .png or .pdf.",
)
@output_option()
@repeated_seed_option
def bench_growth(
    *, axes: tuple[str, ...], most: int | None, picture: Path | None, output: Form, seed: int
) -> None:
    """Measure how the time of a pod grows with nodes, pods, shapes, labels and groups."""
    from moorage.cli.render import show
    from moorage_lab.bench.growth.report import draw, growths
    from moorage_lab.bench.growth.run import measured
    from moorage_sandbox.pictures.files import check_picture

    if picture is not None:
        check_picture(picture)

    work = [
        (name, size)
        for name in axes or AXES
        for size in AXES[name].sizes
        if most is None or size <= most
    ]
    if not work:
        raise click.UsageError(f"--most {most} leaves no size of {', '.join(axes)}")
    points = []
    for point in measured(work, seed):
        click.echo(f"{point.axis} {point.size:,}: {point.pod_us:.0f} us a pod", err=True)
        points.append(point)
    found = growths(points)
    if picture is not None:
        draw(found, picture)
    lines = [line for each in found for line in (*each.as_lines(), "")]
    show(output, [each.as_json() for each in found], text="\n".join(lines[:-1]))
