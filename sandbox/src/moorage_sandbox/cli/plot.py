"""``moorage plot``: a cluster's nodes as bars."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moorage.base.errors import UsageError
from moorage.cli.options import kubeconfig_option, output_option
from moorage.cli.render import show

if TYPE_CHECKING:
    from moorage.api.node import Node
    from moorage.api.pod import Pod
    from moorage.cli.manifests import Manifest
    from moorage.cli.render import Form
    from moorage_sandbox.pictures.bars import GroupOf, Panel

_EPILOG = """
\b
Examples:
  moorage plot --to cluster.svg                    the cluster of the kubeconfig
  moorage plot --to gpus.png -r nvidia.com/gpu --color-by label:app
  kubectl get nodes,pods -A -o json > monday.json
  moorage plot monday.json tuesday.json --to both.svg

\b
Needs matplotlib: pip install 'moorage[plot]'.
"""


@click.command(epilog=_EPILOG)
@click.argument("files", nargs=-1, metavar="[FILE]...")
@click.option(
    "--to",
    "picture",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="The picture; its suffix says the format: .svg, .png or .pdf.",
)
@click.option(
    "-r",
    "--resource",
    "resources",
    multiple=True,
    metavar="NAME",
    help="What to draw; may be repeated. Default: cpu, memory and the extended resources in use.",
)
@click.option(
    "--color-by",
    default="namespace",
    show_default=True,
    metavar="WHAT",
    help="What gives a pod its colour: namespace, scheduler, priority or label:KEY.",
)
@output_option()
@kubeconfig_option
def plot(
    *,
    files: tuple[str, ...],
    picture: Path,
    output: Form,
    resources: tuple[str, ...],
    color_by: str,
    kubeconfig: str,
    context: str,
) -> None:
    """Draw nodes as bars: how full each is, and of which pods.

    Reads the cluster of the kubeconfig, or FILEs of Nodes and Pods, JSON or YAML, which are drawn
    next to each other.
    """
    from moorage_sandbox.pictures.bars import draw, panel, resources_in_use
    from moorage_sandbox.pictures.files import check_picture

    check_picture(picture)
    group_of = _group_of(color_by)
    if files:
        clusters = [(Path(file).stem, *_read(file)) for file in files]
    else:
        clusters = [("", *_fetch(kubeconfig, context))]
    in_use = {name for _, nodes, pods in clusters for name in resources_in_use(nodes, pods)}
    drawn = resources or tuple(sorted(in_use, key=lambda name: ("/" in name, name)))
    columns: list[list[Panel]] = [
        [panel(nodes, pods, name, title=title, group_of=group_of) for name in drawn]
        for title, nodes, pods in clusters
    ]
    draw(columns, picture)
    panels = [each for column in columns for each in column]
    lines = [f"{each.title} {each.resource}: {each.summary}".strip() for each in panels]
    drawn_panels = [
        {"title": each.title, "resource": each.resource, "summary": each.summary} for each in panels
    ]
    show(output, {"file": str(picture), "panels": drawn_panels}, text="\n".join(lines))


def _group_of(color_by: str) -> GroupOf:
    kind, _, key = color_by.partition(":")
    match kind:
        case "namespace":
            return lambda pod: pod.namespace
        case "scheduler":
            return lambda pod: pod.spec.scheduler_name
        case "priority":
            return lambda pod: pod.spec.priority_class_name or str(pod.spec.priority or 0)
        case "label" if key:
            return lambda pod: pod.metadata.labels.get(key, f"no {key}")
        case _:
            raise UsageError(
                f"--color-by {color_by}: say namespace, scheduler, priority or label:KEY"
            )


def _read(file: str) -> tuple[list[Node], list[Pod]]:
    from moorage.cli.manifests import read_manifests

    return _typed(read_manifests([file]), file)


def _fetch(kubeconfig: str, context: str) -> tuple[list[Node], list[Pod]]:
    from moorage.api.resources import NODES, PODS
    from moorage.cli.session import Session, run_session

    async def work(session: Session) -> list[Any]:
        objects: list[Any] = []
        for resource in (NODES, PODS):
            items: Any = (await session.client.list(resource))["items"]
            # The items of a list do not name their kind.
            objects += [{**each, "kind": resource.kind} for each in items]
        return objects

    return _typed(run_session(work, kubeconfig=kubeconfig, context=context), "the cluster")


def _typed(manifests: Sequence[Manifest], source: str) -> tuple[list[Node], list[Pod]]:
    from moorage.api.codec import from_dict
    from moorage.api.node import Node
    from moorage.api.pod import Pod

    nodes = [from_dict(Node, each) for each in manifests if each["kind"] == "Node"]
    pods = [from_dict(Pod, each) for each in manifests if each["kind"] == "Pod"]
    if not nodes:
        raise UsageError(f"there are no nodes in {source}; nothing to draw")
    return nodes, pods
