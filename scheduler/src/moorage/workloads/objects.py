"""Owners and pods as plans and controllers read them."""

from __future__ import annotations

from typing import Any, TypeAlias

from moorage.api.meta import ApiObject
from moorage.api.pod import Pod, PodSpec
from moorage.api.resources import ResourceType

Json: TypeAlias = dict[str, Any]


class Whole(ApiObject, frozen=True, kw_only=True):
    """Any object with a spec and a status, without a schema.

    Templates are copied from these objects into new objects, so decoding must keep every field.
    """

    spec: dict[str, Any] = {}  # noqa: RUF012  (the codec library copies it)
    status: dict[str, Any] = {}  # noqa: RUF012


class ViewedPodSpec(PodSpec, frozen=True, kw_only=True):
    """The spec of a pod with the names that the pod has in its services."""

    hostname: str = ""
    subdomain: str = ""


class ViewedPod(Pod, frozen=True, kw_only=True):
    """A pod as the controllers see it.

    The names are not in `Pod`, because the scheduler keeps equal specs once: pods of a StatefulSet
    and of an indexed Job have one spec but for their hostnames.
    """

    spec: ViewedPodSpec = ViewedPodSpec()


def owner_reference(obj: ApiObject, resource: ResourceType) -> Json:
    """Return the owner reference that the dependents of an object carry."""
    return {
        "apiVersion": resource.api_version,
        "kind": resource.kind,
        "name": obj.name,
        "uid": obj.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
