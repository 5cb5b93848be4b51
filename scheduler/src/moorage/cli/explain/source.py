"""The source of the facts: a running scheduler, a file, or the lists of an API server.

A running scheduler answers from its own state. From a file or lists, the same engine computes the
answer afresh.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import msgspec

from moorage.api.manifest_text import with_kind
from moorage.api.resources import NODES, PODS, ResourceType, group_version_path
from moorage.base.clock import SystemClock
from moorage.base.errors import (
    KubeconfigError,
    MoorageError,
    NotFoundError,
    UsageError,
    api_error,
)
from moorage.base.files import DATA_BYTES_MAX, read_file, read_stream
from moorage.cli.ask import SchedulerLink, has_scheduler, read_answer, run_asking
from moorage.cli.cluster_choice import choose_cluster
from moorage.cli.question_target import QuestionTarget
from moorage.cli.render import show_note
from moorage.cli.served_configuration import (
    ServedConfiguration,
    check_same_cluster,
    served_configuration,
    unknown_configuration,
)
from moorage.cli.session import Session, run_session
from moorage.client.transport import Answer, Call
from moorage.config.load import load_config
from moorage.config.own import LoadedConfiguration
from moorage.explain.answer import Explanation
from moorage.explain.explaining import effort_of, explain_by_name
from moorage.explain.question import ExplanationAnswer
from moorage.plugins.from_outside import with_plugins
from moorage.virtual.deciding_half import ClusterInputs
from moorage.virtual.objects import KINDS, ClusterObjects, read_objects

CONFIG_OPTION = "--config FILE"
_PAGE = 500
_CALL_SECONDS = 120.0


class _List(msgspec.Struct, rename="camel"):
    items: list[msgspec.Raw] | None = None
    metadata: dict[str, object] = {}


_list = msgspec.json.Decoder(_List).decode


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """The question of a person.

    Parameters
    ----------
    name, namespace
        The pod; an empty namespace is that of the context.
    node, every, thorough
        The node to tell, whether all nodes are told, and whether more is tried.
    dump
        A file of objects; None asks a server.
    config, plugins
        The scheduler's configuration and plugins from outside, to compute afresh.
    to
        The scheduler to ask, and the API server.
    """

    name: str
    namespace: str = ""
    node: str = ""
    every: bool = False
    thorough: bool = False
    dump: Path | None = None
    config: Path | None = None
    plugins: Sequence[str] = ()
    to: QuestionTarget


def find_explanation(wanted: Wanted) -> Explanation:
    """Return the answer of the scheduler that is named, or of the sandbox's, or computed afresh.

    Raises
    ------
    MoorageError
        The scheduler that is named does not answer, or there are no objects to compute from.
    """
    elsewhere = wanted.dump or wanted.config or wanted.plugins
    computed = elsewhere or wanted.thorough
    if wanted.to.is_named:
        if elsewhere:
            raise UsageError(
                "--scheduler and --lease ask a running scheduler; --from, --config and --plugin "
                "compute afresh: leave one of them out"
            )
        reads_objects = wanted.thorough or wanted.to.kubeconfig or wanted.to.context
        if reads_objects:
            check_same_cluster(wanted.to)
        return _afresh(wanted) if wanted.thorough else _ask_scheduler(wanted)
    if not computed and has_scheduler(wanted.to):
        try:
            return _ask_scheduler(wanted)
        except NotFoundError:
            pass  # a scheduler does not know the pods that have ended
        except UsageError:
            raise
        except MoorageError as error:
            show_note(f"{error}; computed afresh instead")
    return _afresh(wanted)


def _ask_scheduler(wanted: Wanted) -> Explanation:
    """Ask a running scheduler."""
    namespace = wanted.namespace or namespace_of(wanted.to)
    query = {"pod": f"{namespace}/{wanted.name}"}
    if wanted.node:
        query["node"] = wanted.node
    if wanted.every:
        query["all"] = "true"

    async def work(link: SchedulerLink) -> bytes:
        return await link.ask("/explain", query)

    return read_answer(run_asking(work, wanted.to), ExplanationAnswer).explanation


def namespace_of(to: QuestionTarget) -> str:
    """Return the namespace of the context, "default" where there is none."""
    try:
        by_address = to.scheduler.startswith("http")
        access = choose_cluster(to.kubeconfig, to.context, notes=not by_address).access
    except KubeconfigError:
        if not to.scheduler:
            raise
        return "default"
    return access.namespace or "default"


def _afresh(wanted: Wanted) -> Explanation:
    """Compute the answer from the objects of a file or a server."""
    if wanted.dump is not None:
        objects, namespace = objects_of_file(wanted.dump), wanted.namespace or "default"
    else:
        to = wanted.to
        objects, namespace = objects_of_server(
            kubeconfig=to.kubeconfig, context=to.context, namespace=wanted.namespace
        )
    for each in objects.unreadable:
        show_note(f"{each.text}; it is left out")
    if wanted.node and wanted.node not in objects.nodes:
        raise UsageError(f'node "{wanted.node}" not found')
    effort = effort_of(node=wanted.node, every=wanted.every, thorough=wanted.thorough)
    served = configuration_of(wanted)
    pod = objects.pods.get((namespace, wanted.name))
    if pod is not None and not pod.spec.node_name and served.unserved([pod.spec.scheduler_name]):
        raise unknown_configuration(
            f"pod {pod.full_name} has schedulerName {pod.spec.scheduler_name}, and "
            f"{served.why_assumed}",
            CONFIG_OPTION,
        )
    inputs = inputs_over(objects, served.config, (*served.plugins, *wanted.plugins))
    answer = explain_by_name(inputs, namespace, wanted.name, effort)
    return msgspec.structs.replace(answer, source=f"{answer.source} By {served.title}.")


def configuration_of(wanted: Wanted) -> ServedConfiguration:
    """Return the configuration that the answer is computed by."""
    if wanted.config is not None:
        return ServedConfiguration(load_config(wanted.config), title=str(wanted.config))
    if wanted.dump is not None:
        return ServedConfiguration()
    return served_configuration(wanted.to, option=CONFIG_OPTION)


def objects_of_file(file: Path) -> ClusterObjects:
    """Read the objects of a file; ``-`` is standard input.

    Raises
    ------
    UsageError
        The file cannot be read, or has no objects in it.
    """
    try:
        if str(file) == "-":
            text = read_stream(sys.stdin.buffer, DATA_BYTES_MAX)
        else:
            text = read_file(file, DATA_BYTES_MAX)
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
    return read_objects(text, str(file))


def objects_of_server(
    *,
    kubeconfig: str,
    context: str,
    namespace: str,
    more: Sequence[ResourceType] = (),
    then: Callable[[Session, ClusterObjects], Awaitable[None]] | None = None,
) -> tuple[ClusterObjects, str]:
    """Read the objects that a scheduler watches from an API server, and the chosen namespace.

    Parameters
    ----------
    more
        Further kinds to read.
    then
        Reads what need not be readable.

    Raises
    ------
    ApiError, TransportError
        The server refuses a list, or cannot be reached.
    """

    async def work(session: Session) -> tuple[ClusterObjects, str]:
        objects = ClusterObjects()
        watched = (kind.resource for kind in KINDS.values())
        await take_kinds(session, (NODES, PODS, *watched, *more), objects)
        if then is not None:
            await then(session, objects)
        return objects, session.namespace

    return run_session(work, kubeconfig=kubeconfig, context=context, namespace=namespace)


async def take_kinds(
    session: Session, kinds: Sequence[ResourceType], objects: ClusterObjects
) -> None:
    """List every object of some kinds; a kind that the server does not have is passed over.

    Raises
    ------
    ApiError, TransportError
        The server refuses a list, or cannot be reached.
    """
    for resource in kinds:
        await _take(session, resource, objects)


async def _take(session: Session, resource: ResourceType, objects: ClusterObjects) -> None:
    """Take in every object of a kind; a server need not have the kind."""
    path = f"{group_version_path(resource.group, resource.version)}/{resource.plural}"
    token = ""
    while True:
        query = [("limit", str(_PAGE))] + ([("continue", token)] if token else [])
        answer = await session.transport.request(
            Call("GET", path, tuple(query), timeout_seconds=_CALL_SECONDS)
        )
        try:
            _check(answer)
        except NotFoundError:
            return
        listed = _list(answer.body)
        for item in with_kind(listed.items or [], resource.kind, resource.api_version):
            objects.add_json(item)
        token = str(listed.metadata.get("continue") or "")
        if not token:
            return


def _check(answer: Answer) -> None:
    if answer.status >= 300:
        told = msgspec.json.decode(answer.body) if answer.body[:1] == b"{" else {}
        raise api_error(answer.status, told.get("reason", ""), told.get("message", ""))


def inputs_over(
    objects: ClusterObjects, config: LoadedConfiguration, plugins: Sequence[str]
) -> ClusterInputs:
    """Return a model with a configuration and plugins from outside.

    Raises
    ------
    UsageError
        A plugin cannot be loaded.
    """
    known = with_plugins(config, plugins)
    return ClusterInputs(
        objects=objects,
        registry=known.registry,
        config=known.config,
        now_ns=SystemClock().now_ns(),
    )
