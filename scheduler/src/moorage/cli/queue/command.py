"""``moorage queue``: asks the scheduler, prints the answer, once or again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from moorage.cli.options import by_option, kubeconfig_option, output_option
from moorage.cli.question_target import QuestionTarget, scheduler_options

if TYPE_CHECKING:
    from moorage.cli.ask import SchedulerLink
    from moorage.cli.render import Form
    from moorage.service.questions.folding.folds import By, Sort

_WATCH_SECONDS = 1.0
_ROWS = 50
_LIMIT = 500
_LIMIT_MAX = 5000
_EPILOG = """
\b
Examples:
  moorage queue                          of the sandbox of this directory
  moorage queue --watch                  shown again every second
  moorage queue --by reason              how many pods wait for each reason
  moorage queue --by none --sort age     pod by pod, the longest wait first
  moorage queue -n team-a -o wide        one namespace, every pod with all columns
  moorage queue --scheduler kube-system/moorage-0
                                         of a pod, through the API server's proxy
  moorage queue --scheduler https://10.0.0.5:10259 --certificate-authority ca.pem

\b
REASON is a code; `moorage reason CODE` explains it. QUEUE is where most pods
of a row are, with … where some are elsewhere:
  active         it is tried as soon as its turn comes; #1 is next
  in-flight      an attempt decides about it
  backoff        it waits after a failed attempt
  unschedulable  it waits for an event that may help, or until the time in UNTIL
  gated          a PreEnqueue plugin keeps it out
  permit         it has a node, and a Permit plugin holds it
  binding        it has a node, and is being bound
"""


@click.command(epilog=_EPILOG)
@click.option("-n", "--namespace", default="", metavar="NAME", help="Only pods of this namespace.")
@click.option("-w", "--watch", is_flag=True, help="Show it again every second, until Ctrl-C.")
@by_option()
@click.option(
    "--sort",
    type=click.Choice(["pods", "age", "priority"]),
    default="pods",
    show_default=True,
    help="The first row: most pods, longest wait, or highest priority. Text only.",
)
@output_option("wide", "name")
@click.option(
    "--limit",
    type=click.IntRange(1, _LIMIT_MAX),
    default=None,
    metavar="N",
    help=f"Most rows. Default: {_ROWS}. Of every other form: most pods of each queue; "
    f"default: {_LIMIT}, with -n {_LIMIT_MAX} of all namespaces.",
)
@scheduler_options
@kubeconfig_option
def queue(
    *,
    namespace: str,
    watch: bool,
    by: By,
    sort: Sort,
    output: Form,
    limit: int | None,
    **target: Any,
) -> None:
    """Show which pods wait for the scheduler, where, how long and why.

    The running scheduler is asked; it goes on undisturbed.
    """
    from moorage.base import aio
    from moorage.cli.ask import run_asking
    from moorage.cli.queue.showing import show_folded, show_pods
    from moorage.cli.served_configuration import check_same_cluster

    async def show(link: SchedulerLink) -> None:
        if output == "text":
            await show_folded(link, namespace, by=by, sort=sort, rows=limit or _ROWS, clear=watch)
        else:
            most = limit or (_LIMIT_MAX if namespace else _LIMIT)
            await show_pods(link, namespace, output, limit=most, clear=watch)

    async def work(link: SchedulerLink) -> None:
        await show(link)
        while watch:
            await aio.sleep(_WATCH_SECONDS)
            await show(link)

    to = QuestionTarget(**target)
    if to.kubeconfig or to.context:
        check_same_cluster(to)
    run_asking(work, to)
