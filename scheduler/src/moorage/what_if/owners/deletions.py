"""Deletes objects with everything they own, as the garbage collector does, and whole namespaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from moorage.api.codec import decode
from moorage.api.meta import ObjectMeta
from moorage.virtual.model import ClusterModel
from moorage.virtual.objects import Key
from moorage.virtual.owner_kinds import OWNERS, group_of
from moorage.workloads.objects import Whole

if TYPE_CHECKING:
    from moorage.what_if.owners.workloads import Workloads


def delete_namespace(name: str, *, model: ClusterModel, workloads: Workloads) -> None:
    """Delete a namespace: its pods with their owners, and then the other objects in it.

    kubernetes v1.36 pkg/controller/namespace/deletion: nothing new is made in it meanwhile.
    """
    _delete_where(lambda meta: meta.namespace == name, model, workloads)
    model.settle()
    for (group, kind), found in list(model.objects.manifests.items()):
        for key in sorted(key for key in found if key[0] == name):
            workloads.forget_object(group, kind, key)
    workloads.forget_object("", "Namespace", ("", name))


def delete_object(
    group: str, kind: str, key: Key, *, model: ClusterModel, workloads: Workloads
) -> None:
    """Delete an object of a kind that has no controller here, and what no other object owns.

    The garbage collector comes when the object is gone, so not as long as it is only marked.
    """
    uid = decode(Whole, model.objects.manifests[group, kind][key]).metadata.uid
    if workloads.protection.delete_object(group, kind, key) and uid:
        _delete_where(
            lambda meta: {ref.uid for ref in meta.owner_references} == {uid}, model, workloads
        )


def _delete_where(
    goes: Callable[[ObjectMeta], bool], model: ClusterModel, workloads: Workloads
) -> None:
    """Delete the owners of pods, and the pods, whose metadata says that they go."""
    for kind in OWNERS:
        for key in sorted(model.objects.manifests.get((group_of(kind), kind), {})):
            if goes(workloads.find(kind, key).metadata):
                workloads.delete_owner(kind, key)
    for pod in sorted(model.objects.pods.values(), key=lambda each: each.key):
        if goes(pod.metadata):
            model.leave(pod, returns=False)
