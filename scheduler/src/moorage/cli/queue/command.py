"""``moorage queue``: asks the scheduler, prints the answer, once or again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from moorage.cli.options import kubeconfig_option, output_option
from moorage.cli.question_target import QuestionTarget, scheduler_options

if TYPE_CHECKING:
    from moorage.cli.ask import SchedulerLink
    from moorage.cli.render import Form

_WATCH_SECONDS = 1.0
_LIMIT = 500
_LIMIT_MAX = 5000
_EPILOG = """
\b
Examples:
  moorage queue                          of the sandbox of this directory
  moorage queue --watch                  shown anew every second
  moorage queue -n team-a -o wide        one namespace, with priorities and waking events
  moorage queue --scheduler kube-system/moorage-0
                                         of a pod, through the API server's proxy
  moorage queue --scheduler https://10.0.0.5:10259 --certificate-authority ca.pem

\b
QUEUE is where a pod is:
  active         it is tried as soon as its turn comes; #1 is next
  in-flight      an attempt decides about it
  backoff        it waits after a failed attempt
  unschedulable  it waits for an event that may help, or until the time that is told
  gated          a PreEnqueue plugin keeps it out
  permit         it has a node, and a Permit plugin holds it
  binding        it has a node, and is being bound
"""


@click.command(epilog=_EPILOG)
@click.option("-n", "--namespace", default="", metavar="NAME", help="Only pods of this namespace.")
@click.option("-w", "--watch", is_flag=True, help="Show it anew every second, until Ctrl-C.")
@output_option("wide", "name")
@click.option(
    "--limit",
    type=click.IntRange(1, _LIMIT_MAX),
    default=None,
    metavar="N",
    help=f"Most pods of each queue. Default: {_LIMIT}; with -n: {_LIMIT_MAX}, of all namespaces.",
)
@scheduler_options
@kubeconfig_option
def queue(
    *,
    namespace: str,
    watch: bool,
    output: Form,
    limit: int | None,
    **target: Any,
) -> None:
    """Show which pods wait for the scheduler, where, until when and why.

    The running scheduler is asked; it goes on undisturbed.
    """
    from moorage.base import aio
    from moorage.cli.ask import run_asking

    most = limit or (_LIMIT_MAX if namespace else _LIMIT)

    async def work(link: SchedulerLink) -> None:
        while True:
            body = await link.ask("/queue", {"limit": str(most)})
            if watch and output in {"text", "wide", "name"}:
                click.clear()
            _show(body, namespace, output)
            if not watch:
                return
            await aio.sleep(_WATCH_SECONDS)

    run_asking(work, QuestionTarget(**target))


def _show(body: bytes, namespace: str, output: Form) -> None:
    from moorage.cli.queue.text import lines, narrowed, read_answer, remarks
    from moorage.cli.render import show, show_note

    found = narrowed(read_answer(body), namespace)
    names = [f"pod/{pod.name}" for pod in found.pods]
    show(output, found, text="\n".join(lines(found, wide=output == "wide")), names=names)
    for remark in remarks(found, namespace):
        show_note(remark)
