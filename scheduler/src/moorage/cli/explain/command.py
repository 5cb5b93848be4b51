"""``moorage explain``: where a pod is, why it has no node, and what would help."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moorage.cli.command_group import CommandGroup
from moorage.cli.completing import complete_objects
from moorage.cli.options import (
    config_option,
    dump_option,
    kubeconfig_option,
    namespace_option,
    output_option,
    plugin_option,
)
from moorage.cli.question_target import QuestionTarget, scheduler_options

if TYPE_CHECKING:
    from moorage.cli.render import Form

_EPILOG = """
\b
Examples:
  moorage explain pod giant                      the sandbox's scheduler is asked; without one it
                                                 is computed afresh from the API's objects, by
                                                 the configuration of the cluster's scheduler
  moorage explain giant                          the same; po giant and pod/giant are, too
  moorage explain pod giant --node node-03       with the answers about one node
  moorage explain pod giant --all -o wide        every node and every plugin
  moorage explain pod giant --from prod.json     from a file of `snapshot save` or kubectl
  moorage explain pod giant --scheduler kube-system/moorage-0
  moorage explain deployment/api                 a workload: moorage explain object --help
  moorage explain pod web --attempt 1            what its first attempt found, on record
  moorage explain pod web --attempt -1 --records decisions.jsonl
                                                 the last one, from a file of `run --record`

\b
Every suggestion that is printed was tried: the plugins themselves let the pod on a node with it.
"""


_SELECTING = frozenset({"-l", "--selector", "-A", "--all-namespaces"})
_OBJECT_EPILOG = """
\b
Examples:
  moorage explain deployment/api       also deploy, sts, ds, job, cronjob, rs, rc;
                                       deployment api, as for kubectl
  moorage explain node/node-03         also podgroup, workload, resourceclaim, pvc, namespace
  moorage explain object rollout/api   another type, by ownerReferences of its pods
  moorage explain -l app=web           the pods with a label; -A for those of all namespaces
  moorage explain job/train -o json    every part, for programs
  moorage explain deploy/api --from prod.json
                                       from a file of `snapshot save` or kubectl

\b
STATE is where pods are:
  not created  the owner wants them and they do not exist: a quota, admission, the controller
  gated        a PreEnqueue plugin keeps them out of the queue
  pending      they have no node
  permit       they have a node, and a Permit plugin holds them
  binding      they are being bound
  not ready    they are bound, and their containers are not ready
  ready, terminating, ended
Exit code 0: the answer is printed, whatever it says. 1: there is no such object, or no server
answers. 2: the command line cannot be used.
"""


class ObjectCommands(CommandGroup):
    """Commands by the type of an object, which is named as for kubectl: ``po x``, ``pod/x``.

    A name alone is that of a pod.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Take a selection of pods, which names no command, for one of objects."""
        if args and args[0].partition("=")[0] in _SELECTING and not ctx.resilient_parsing:
            args = ["object", *args]
        return super().parse_args(ctx, args)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command of the type in the first word."""
        if not (args[0].startswith("-") or args[0] in self.commands or ctx.resilient_parsing):
            args = _with_type(args)
        return super().resolve_command(ctx, args)


def _with_type(args: list[str]) -> list[str]:
    """Return the words with the command of their type first; one word is the name of a pod."""
    from moorage.api.resources import PODS, by_name

    word, rest = args[0], args[1:]
    typed, slash, name = word.partition("/")
    two_words = bool(rest) and not rest[0].startswith("-")
    if by_name(typed) == PODS and (slash or rest):
        if _selects(rest):
            return ["object", *rest]
        return ["pod", name, *rest] if slash else ["pod", *rest]
    if slash or two_words:
        return ["object", *args]
    return ["pod", *args]


def _selects(words: list[str]) -> bool:
    """Whether words after a type select objects instead of naming one."""
    return bool(words) and words[0].partition("=")[0] in _SELECTING


@click.group(cls=ObjectCommands)
def explain() -> None:
    """Say where pods are on their way, why they have no node, and which change would help.

    TYPE/NAME or TYPE NAME is taken as kubectl takes it: a pod, a workload, another owner of pods.
    """


@explain.command(epilog=_EPILOG)
@click.argument("name", shell_complete=complete_objects)
@click.option("--node", default="", metavar="NODE", help="Also show the answers about this node.")
@click.option("--all", "every", is_flag=True, help="Show every node, not only the ten best.")
@click.option(
    "--thorough",
    is_flag=True,
    help="Try more, however long it takes; computed afresh, not by the scheduler.",
)
@dump_option
@config_option("Configuration of the scheduler: the answer is computed afresh with it.")
@click.option(
    "--attempt",
    type=int,
    default=None,
    metavar="K",
    help="What attempt K found, from the scheduler's records; -1 is the last one.",
)
@click.option(
    "--records",
    type=click.Path(path_type=Path, dir_okay=False),
    default=None,
    metavar="FILE",
    help="Records from a file that `moorage run --record` wrote, not from a scheduler.",
)
@plugin_option
@output_option("wide")
@namespace_option
@scheduler_options
@kubeconfig_option
def pod(  # noqa: PLR0913 - one parameter an option
    *,
    name: str,
    node: str,
    every: bool,
    thorough: bool,
    dump: Path | None,
    config: Path | None,
    plugins: tuple[str, ...],
    output: Form,
    namespace: str,
    **reached: Any,
) -> None:
    """Explain pod NAME.

    First comes one sentence. Then come the suggestions, and a table of nodes, the best node first.
    """
    from moorage.cli.explain.source import Wanted, find_explanation
    from moorage.cli.explain.text import report
    from moorage.cli.render import show

    pod_name, attempt = name.removeprefix("pod/"), reached.pop("attempt")
    records, wide = reached.pop("records"), output == "wide"
    to = QuestionTarget(**reached)
    if attempt is not None or records is not None:
        from moorage.cli.explain.recorded import record_of, record_text

        wanted_attempt = -1 if attempt is None else attempt
        record = record_of(to, (namespace or "default", pod_name), wanted_attempt, file=records)
        show(output, record, text=lambda: record_text(record, node=node, every=every, wide=wide))
        return
    wanted = Wanted(
        name=pod_name,
        namespace=namespace,
        node=node,
        every=every,
        thorough=thorough,
        dump=dump,
        config=config,
        plugins=plugins,
        to=to,
    )
    found = find_explanation(wanted)
    show(output, found, text=lambda: report(found, wide=wide))


@explain.command("object", epilog=_OBJECT_EPILOG)
@click.argument(
    "words", metavar="[TYPE/NAME | TYPE NAME]", nargs=-1, shell_complete=complete_objects
)
@click.option("-l", "--selector", default="", metavar="LABELS", help="The pods with these labels.")
@click.option("-A", "--all-namespaces", is_flag=True, help="The pods of all namespaces.")
@dump_option
@config_option("Configuration of the scheduler: the answer is computed afresh with it.")
@plugin_option
@output_option("wide")
@namespace_option
@scheduler_options
@kubeconfig_option
def object_(
    *,
    words: tuple[str, ...],
    selector: str,
    all_namespaces: bool,
    dump: Path | None,
    config: Path | None,
    plugins: tuple[str, ...],
    output: Form,
    namespace: str,
    **reached: Any,
) -> None:
    """Explain a workload, a node, a claim, a namespace, or a selection of pods.

    First comes one sentence: how many pods are ready, and what keeps most of the rest. Then come
    the pods by state and cause, and changes that help; each was tried for all these pods.
    """
    from moorage.cli.explain.object_text import object_report
    from moorage.cli.explain.objects import find_object_explanation, named_object
    from moorage.cli.explain.source import Wanted
    from moorage.cli.render import show
    from moorage.explain.workloads.answer import ObjectQuery

    type_, name = named_object(words, selects=bool(selector) or all_namespaces)
    query = ObjectQuery(type_=type_, name=name, all_namespaces=all_namespaces, selector=selector)
    wanted = Wanted(
        name=name,
        namespace=namespace,
        dump=dump,
        config=config,
        plugins=plugins,
        to=QuestionTarget(**reached),
    )
    found = find_object_explanation(query, wanted)
    show(output, found, text=lambda: object_report(found, wide=output == "wide"))
