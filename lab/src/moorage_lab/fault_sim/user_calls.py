"""Calls of a user: an act becomes a call of the API server."""

from __future__ import annotations

from moorage.api.coscheduling import COSCHEDULING_POD_GROUPS
from moorage.api.meta import ObjectReference
from moorage.api.resources import ELASTIC_QUOTAS, ResourceType, by_kind
from moorage.base.errors import MoorageError
from moorage.client.requests import MERGE_PATCH, patch_body
from moorage.client.writes import Client
from moorage_lab.fault_sim import acts

_CUSTOM = (COSCHEDULING_POD_GROUPS, ELASTIC_QUOTAS)

UserAct = acts.Create | acts.Delete | acts.Patch | acts.Bind


async def call(client: Client, act: UserAct) -> str:
    """Carry an act of a user out.

    Returns
    -------
    str
        The server's reason to refuse it, "" for none. A refusal is no fault of the cluster: the
        object may be gone.
    """
    try:
        match act:
            case acts.Create():
                meta = act.object["metadata"]
                resource = _resource(act.object["kind"], act.object["apiVersion"])
                await client.create(resource, act.object, namespace=meta.get("namespace", ""))
            case acts.Delete():
                resource = _resource(act.kind, act.api_version)
                await client.delete(resource, act.name, namespace=act.namespace)
            case acts.Bind():
                target = ObjectReference(kind="Pod", namespace=act.namespace, name=act.pod)
                await client.bind(target, node_name=act.node)
            case acts.Patch():
                await client.patch(
                    _resource(act.kind, act.api_version),
                    act.name,
                    patch_body(act.changes),
                    namespace=act.namespace,
                    subresource=act.subresource,
                    content_type=MERGE_PATCH,
                )
    except MoorageError as problem:
        return str(problem)
    return ""


def _resource(kind: str, version: str | None) -> ResourceType:
    for custom in _CUSTOM:
        if (kind, version) == (custom.kind, custom.api_version):
            return custom
    resource = by_kind(kind, version)
    assert resource is not None, f"no kind {kind} of {version}"
    return resource
