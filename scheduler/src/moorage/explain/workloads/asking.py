"""Which answer a question about an object or a selection of pods gets."""

from __future__ import annotations

from typing import Final

import msgspec

from moorage.api import resources
from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS
from moorage.api.pod import Pod
from moorage.api.resources import ResourceType, by_name, is_named
from moorage.api.selector_text import parse_label_selector
from moorage.base.errors import NotFoundError, UsageError
from moorage.explain.objects.claims import explain_resource_claim, explain_volume_claim
from moorage.explain.objects.groups import explain_group, explain_workload
from moorage.explain.objects.namespaces import explain_namespace
from moorage.explain.objects.nodes import explain_node
from moorage.explain.workloads.answer import ObjectQuery
from moorage.explain.workloads.explaining import Answering, explain_owner, explain_pods
from moorage.explain.workloads.owners import (
    Manifests,
    Owner,
    custom_owners,
    owner_tree,
    pods_of,
    watched_owner,
)
from moorage.service.core import Core

OWNERS: Final[tuple[ResourceType, ...]] = (
    resources.DEPLOYMENTS,
    resources.REPLICA_SETS,
    resources.STATEFUL_SETS,
    resources.DAEMON_SETS,
    resources.JOBS,
    resources.CRON_JOBS,
    resources.REPLICATION_CONTROLLERS,
)
"""The built-in types whose objects own pods."""

_OTHER_GROUPS: Final = (COSCHEDULING_POD_GROUPS, resources.COMPOSITE_POD_GROUPS)
_ANSWERED: Final = ", ".join(
    each.singular
    for each in (
        *OWNERS,
        resources.POD_GROUPS,
        resources.COMPOSITE_POD_GROUPS,
        resources.WORKLOADS,
        resources.NODES,
        resources.NAMESPACES,
        resources.RESOURCE_CLAIMS,
        resources.PERSISTENT_VOLUME_CLAIMS,
    )
)


def answer_query(core: Core, query: ObjectQuery) -> Answering:
    """Return the steps of the answer to a question.

    Raises
    ------
    UsageError
        The question cannot be answered; the message says what to write.
    NotFoundError
        There is no such object.
    """
    if not query.type_:
        return _of_selection(core, query)
    if not query.name:
        raise UsageError(f"{query.type_}: name the object, as TYPE/NAME")
    if query.selector or query.all_namespaces:
        raise UsageError(f"{query.title}: a name and a selection exclude each other")
    resource = by_name(query.type_)
    if any(is_named(each, query.type_) for each in _OTHER_GROUPS):
        resource = resources.POD_GROUPS  # all groups are answered about alike
    manifests = Manifests(query.objects)
    if resource is None:
        return explain_owner(core, _custom(core, query, manifests), manifests)
    key = (query.namespace, query.name)
    if resource == resources.NODES:
        return explain_node(core, query.name)
    if resource == resources.NAMESPACES:
        return explain_namespace(core, query.name, manifests)
    if resource == resources.RESOURCE_CLAIMS:
        return explain_resource_claim(core, *key)
    if resource == resources.PERSISTENT_VOLUME_CLAIMS:
        return explain_volume_claim(core, *key)
    if resource == resources.POD_GROUPS:
        return explain_group(core, *key)
    if resource == resources.WORKLOADS:
        return explain_workload(core, *key)
    if resource in OWNERS:
        return explain_owner(core, _built_in(core, query, resource, manifests), manifests)
    raise UsageError(
        f"{query.title}: explain answers about pods, {_ANSWERED} and custom owners of pods"
    )


def _of_selection(core: Core, query: ObjectQuery) -> Answering:
    try:
        chosen = parse_label_selector(query.selector)
    except ValueError as problem:
        raise UsageError(f"selector {query.selector}: {problem}") from problem
    namespace = "" if query.all_namespaces else query.namespace
    pods = [
        pod
        for pod in core.store.all_pods()
        if (not namespace or pod.metadata.namespace == namespace)
        and chosen.matches(pod.metadata.labels)
    ]
    if not pods:
        where = f"namespace {namespace}" if namespace else "any namespace"
        labels = f" with labels {query.selector}" if query.selector else ""
        raise NotFoundError(404, "NotFound", f"there are no pods{labels} in {where}")
    return explain_pods(core, pods, namespace=namespace, name=query.selector)


def _custom(core: Core, query: ObjectQuery, manifests: Manifests) -> Owner:
    owners = custom_owners(core, manifests, (query.type_, query.name), query.namespace)
    if not owners:
        raise NotFoundError(
            404,
            "NotFound",
            f'"{query.type_}" is no type that is known, and no pod in {query.namespace} has an '
            f"owner {query.type_}/{query.name}",
        )
    if len(owners) > 1:
        kinds = ", ".join(f"{each.kind.lower()}.{each.group}" for each in owners)
        raise UsageError(f"{query.title}: several types have this name; write one of {kinds}")
    return owners[0]


def _built_in(
    core: Core, query: ObjectQuery, resource: ResourceType, manifests: Manifests
) -> Owner:
    owner = Owner(resource.group, resource.kind, query.namespace, query.name)
    manifest = manifests.find(owner)
    if manifest is not None:
        uid = str(manifest["metadata"].get("uid") or "")
        return msgspec.structs.replace(owner, uid=uid)
    tree = owner_tree(core, owner, manifests)
    pods: list[Pod] = pods_of(core, tree)
    if not pods and len(tree) == 1 and watched_owner(core, owner) is None:
        raise NotFoundError(
            404, "NotFound", f'{resource.qualified} "{query.name}" not found in {query.namespace}'
        )
    return owner
