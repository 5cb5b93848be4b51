"""The source of an answer about an object: a running scheduler, a file, or lists of a server.

A scheduler watches neither Deployments nor Events nor quotas. So they are read here, with the
rights of the person who asks, and are sent along.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from moorage.api import resources
from moorage.api.codec import decode_untyped
from moorage.api.resources import ResourceType, by_name, resource_path
from moorage.base.errors import ApiError, MoorageError, NotFoundError, UsageError
from moorage.cli.ask import SchedulerLink, has_scheduler, read_answer, run_asking
from moorage.cli.explain.source import (
    CONFIG_OPTION,
    Wanted,
    configuration_of,
    inputs_over,
    namespace_of,
    objects_of_file,
    objects_of_server,
)
from moorage.cli.kinds import named_kind
from moorage.cli.render import show_note
from moorage.cli.served_configuration import check_same_cluster, note_unserved
from moorage.cli.session import Session, run_session
from moorage.explain.explaining import AFRESH, without_extenders
from moorage.explain.workloads.answer import ObjectExplanation, ObjectQuery
from moorage.explain.workloads.asking import answer_query
from moorage.explain.workloads.explaining import complete
from moorage.explain.workloads.question import EXPLAIN_OBJECT, ObjectExplanationAnswer
from moorage.virtual.objects import ClusterObjects

_ALWAYS: Final = (resources.RESOURCE_QUOTAS, resources.LIMIT_RANGES)
_BELOW: Final[Mapping[str, tuple[ResourceType, ...]]] = {
    "Deployment": (resources.REPLICA_SETS,),
    "CronJob": (resources.JOBS,),
}
"""The owners of pods between an owner and its pods."""
_BELOW_CUSTOM: Final = (
    resources.REPLICA_SETS,
    resources.STATEFUL_SETS,
    resources.JOBS,
    resources.DEPLOYMENTS,
)
_OWNERS: Final = (
    *_BELOW_CUSTOM,
    resources.CRON_JOBS,
    resources.DAEMON_SETS,
    resources.REPLICATION_CONTROLLERS,
)
_WATCHED: Final = (
    resources.NODES,
    resources.RESOURCE_CLAIMS,
    resources.PERSISTENT_VOLUME_CLAIMS,
    resources.POD_GROUPS,
    resources.WORKLOADS,
)
"""Types about which the scheduler answers without manifests."""
_FAILED: Final = "reason=FailedCreate"
_PAGE: Final = 500


def named_object(words: Sequence[str], *, selects: bool) -> tuple[str, str]:
    """Return the type and the name that a person writes; "" and "" for a selection.

    Raises
    ------
    UsageError
        The words do not name one object.
    """
    if not words and selects:
        return "", ""
    if len(words) == 1 and "/" in words[0]:
        type_, _, name = words[0].partition("/")
        if type_ and name:
            return type_, name
    if len(words) == 2 and "/" not in words[0]:
        return words[0], words[1]
    raise UsageError("name one object, as TYPE/NAME or TYPE NAME, or select pods with -l or -A")


def find_object_explanation(query: ObjectQuery, wanted: Wanted) -> ObjectExplanation:
    """Return the answer of the scheduler that is named, or of the sandbox's, or computed afresh.

    Raises
    ------
    MoorageError
        There is no such object, the scheduler that is named does not answer, or there are no
        objects to compute from.
    """
    elsewhere = wanted.dump or wanted.config or wanted.plugins
    if wanted.to.is_named and elsewhere:
        raise UsageError(
            "--scheduler and --lease ask a running scheduler; --from, --config and --plugin "
            "compute afresh: leave one of them out"
        )
    if wanted.to.is_named:
        if query.type_ or wanted.to.kubeconfig or wanted.to.context:
            check_same_cluster(wanted.to)  # the objects of a type come from the chosen cluster
        return _ask_scheduler(query, wanted)
    if not elsewhere and has_scheduler(wanted.to):
        try:
            return _ask_scheduler(query, wanted)
        except (UsageError, ApiError):
            raise
        except MoorageError as error:
            show_note(f"{error}; computed afresh instead")
    return _afresh(query, wanted)


def _ask_scheduler(query: ObjectQuery, wanted: Wanted) -> ObjectExplanation:
    """Ask a running scheduler, with what it does not watch."""
    namespace = wanted.namespace or namespace_of(wanted.to)
    query = msgspec.structs.replace(query, namespace=namespace)
    if query.type_:
        query = msgspec.structs.replace(query, objects=_objects(query, wanted))

    async def work(link: SchedulerLink) -> bytes:
        return await link.post(EXPLAIN_OBJECT, msgspec.json.encode(query))

    return read_answer(run_asking(work, wanted.to), ObjectExplanationAnswer).explanation


def _objects(query: ObjectQuery, wanted: Wanted) -> tuple[dict[str, Any], ...]:
    """Read from the API server what a scheduler does not watch; say what cannot be read.

    Raises
    ------
    NotFoundError
        There is no such object.
    """

    async def work(session: Session) -> list[dict[str, Any]]:
        try:
            resource = await named_kind(session.client, query.type_)
        except UsageError:  # the references of the pods may name it all the same
            return await _lists(session, (*_BELOW_CUSTOM, *_ALWAYS), query.namespace)
        if resource == resources.NAMESPACES:
            return await _lists(session, (*_OWNERS, *_ALWAYS), query.name)
        if resource in _WATCHED:
            return []  # the scheduler knows the object, and nothing else is needed
        manifests = []
        path = resource_path(resource, query.namespace or None, query.name)
        try:
            obj = await session.client.read_path(path)
            manifests.append({**obj, "apiVersion": resource.api_version, "kind": resource.kind})
        except NotFoundError:
            raise
        except ApiError as error:
            show_note(f"{resource.singular} {query.name} cannot be read: {error}")
        custom = by_name(query.type_) is None
        below = _BELOW_CUSTOM if custom else _BELOW.get(resource.kind, ())
        return manifests + await _lists(session, (*below, *_ALWAYS), query.namespace)

    to = wanted.to
    try:
        manifests = run_session(work, kubeconfig=to.kubeconfig, context=to.context)
    except NotFoundError:
        raise
    except MoorageError as error:
        show_note(f"owners, quotas and Events are not looked at: {error}")
        return ()
    for each in manifests:
        each["metadata"].pop("managedFields", None)
    return tuple(manifests)


async def _lists(
    session: Session, kinds: Sequence[ResourceType], namespace: str
) -> list[dict[str, Any]]:
    """List objects of a namespace, and the Events about pods that were not created."""
    manifests: list[dict[str, Any]] = []
    wanted = [(resource, "") for resource in kinds] + [(resources.CORE_EVENTS, _FAILED)]
    for resource, fields in wanted:
        path = f"{resource_path(resource, namespace)}?limit={_PAGE}"
        try:
            listed: Any = await session.client.read_path(
                f"{path}&fieldSelector={fields}" if fields else path
            )
        except ApiError as error:
            show_note(f"{resource.plural} of {namespace} are not looked at: {error}")
            continue
        items = listed.get("items") or []
        manifests += [
            {**each, "apiVersion": resource.api_version, "kind": resource.kind} for each in items
        ]
    return manifests


def _afresh(query: ObjectQuery, wanted: Wanted) -> ObjectExplanation:
    """Compute the answer from the objects of a file or a server."""
    if wanted.dump is not None:
        objects, namespace = objects_of_file(wanted.dump), wanted.namespace or "default"
    else:
        objects, namespace = objects_of_server(
            kubeconfig=wanted.to.kubeconfig,
            context=wanted.to.context,
            namespace=wanted.namespace,
            more=(*_OWNERS, *_ALWAYS, resources.CORE_EVENTS),
        )
    for each in objects.unreadable:
        show_note(f"{each.text}; it is left out")
    served = configuration_of(wanted)
    note_unserved(served, objects.pods_on(""), option=CONFIG_OPTION)
    inputs, notes = without_extenders(
        inputs_over(objects, served.config, (*served.plugins, *wanted.plugins))
    )
    of_namespace = by_name(query.type_) == resources.NAMESPACES
    where = query.name if of_namespace else "" if query.all_namespaces else namespace
    query = msgspec.structs.replace(query, namespace=namespace, objects=_manifests(objects, where))
    answer = complete(answer_query(inputs.fill().core, query))
    return msgspec.structs.replace(
        answer, source=f"{AFRESH} By {served.title}.", notes=(*answer.notes, *notes)
    )


def _manifests(objects: ClusterObjects, namespace: str) -> tuple[dict[str, Any], ...]:
    """Return the manifests of a namespace; the objects of other kinds are typed already."""
    return tuple(
        decode_untyped(text)
        for manifests in objects.manifests.values()
        for key, text in manifests.items()
        if key[0] and key[0] == namespace
    )
