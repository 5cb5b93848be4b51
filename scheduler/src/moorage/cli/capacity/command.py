"""``moorage capacity``: how many more pods fit, and which nodes would place what waits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click
import msgspec

from moorage.cli.options import by_option, output_option, rows_option
from moorage.cli.what_if.options import source_options

if TYPE_CHECKING:
    from moorage.cli.render import Form
    from moorage.service.questions.folding.folds import By

_EPILOG = """
\b
Examples:
  moorage capacity                          which nodes would place the pods that wait
  moorage capacity --like deployment/web    how many more replicas fit
  moorage capacity -f pod.yaml --from prod.json
  moorage capacity --mix release.yaml       how many times all objects of a file fit

\b
Only free room counts: nothing is evicted. Pods that wait now take their room first.
"""


@click.command(epilog=_EPILOG)
@click.option("--like", default="", metavar="KIND/NAME", help="Pods like those of this owner.")
@click.option("-f", "--filename", "pod_file", default="", metavar="FILE", help="Pods like this.")
@click.option(
    "--mix",
    default="",
    metavar="FILE",
    help="Pods and owners of pods; all of them together count as one.",
)
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="SHAPE",
    help="Also try nodes of this shape for the pods that wait, as of `up --shape`.",
)
@click.option(
    "--most",
    type=click.IntRange(min=1),
    default=10_000,
    show_default=True,
    metavar="NUMBER",
    help="Count no further than so many pods.",
)
@by_option("none")
@rows_option(20)
@output_option("wide")
@source_options
def capacity(
    *,
    like: str,
    pod_file: str,
    mix: str,
    shapes: tuple[str, ...],
    most: int,
    by: By,
    limit: int,
    output: Form,
    **flags: Any,
) -> None:
    """Count how many more pods fit, and the nodes that would place the pods that wait."""
    from moorage.base.errors import UsageError
    from moorage.cli.capacity.answer import answer_capacity, body_of, title_of
    from moorage.cli.capacity.text import CapacityReport, report
    from moorage.cli.render import show
    from moorage.cli.rows.text import Shown, terminal_width
    from moorage.cli.what_if.source import source_of

    if sum(map(bool, (like, pod_file, mix))) > 1:
        raise UsageError("--like, -f and --mix exclude each other")
    source = source_of(flags)
    body = body_of(
        like, pod_file or mix, whole=bool(mix), shapes=shapes, namespace=source.chosen_namespace
    )
    body = msgspec.structs.replace(body, most=most)
    answer, source_text = answer_capacity(source, body)
    fields = CapacityReport(
        **msgspec.structs.asdict(answer),
        question=title_of(like, pod_file, mix),
        source=source_text,
    )
    shown = None if output == "wide" else Shown(by, limit, terminal_width())
    show(output, fields, text=lambda: report(fields, shown))
