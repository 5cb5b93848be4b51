"""The pods of an owner: found by ownerReferences, also through objects between it and the pods.

Between a Deployment and its pods are ReplicaSets, between a CronJob and its pods Jobs. A custom
resource may own pods by itself, or by any of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec

from moorage.api.meta import ApiObject, ObjectMeta, OwnerReference
from moorage.api.pod import Pod
from moorage.service.core import Core

_LEVELS_MOST: Final = 6
"""Owners of owners, at most: a guess, for a circle of references."""
_REPLICATED: Final = (
    ("replica_sets", "apps", "ReplicaSet"),
    ("stateful_sets", "apps", "StatefulSet"),
    ("replication_controllers", "", "ReplicationController"),
)
"""(lister, group, kind) of the owners with a number of replicas that a scheduler watches."""
_BETWEEN: Final = (*_REPLICATED, ("jobs", "batch", "Job"))
"""(lister, group, kind) of the owners of pods that a scheduler may watch."""


class Owner(msgspec.Struct, frozen=True):
    """An owner of pods.

    Parameters
    ----------
    group, kind
        Of its type.
    namespace, name
        The object.
    uid
        Its uid; empty where it is not known, which fits every uid.
    """

    group: str
    kind: str
    namespace: str
    name: str
    uid: str = ""

    def owns(self, metadata: ObjectMeta) -> bool:
        """Whether an object has this owner among its ownerReferences."""
        if metadata.namespace != self.namespace:
            return False
        return any(self.is_named_by(each) for each in metadata.owner_references)

    def is_named_by(self, reference: OwnerReference) -> bool:
        """Whether a reference is to this object."""
        if (reference.name, reference.kind) != (self.name, self.kind):
            return False
        if reference.api_version.rpartition("/")[0] != self.group:
            return False
        return not (self.uid and reference.uid) or self.uid == reference.uid


class Manifests:
    """Manifests of one question, by kind and name: owners, Events and quotas.

    Parameters
    ----------
    manifests
        Plain JSON values, each with apiVersion, kind and metadata.
    """

    def __init__(self, manifests: Iterable[Mapping[str, Any]] = ()) -> None:
        self._by_kind: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for each in manifests:
            group = str(each.get("apiVersion") or "").rpartition("/")[0]
            kind = str(each.get("kind") or "")
            if isinstance(each.get("metadata"), dict):
                self._by_kind.setdefault((group, kind), []).append(dict(each))

    def of_kind(self, group: str, kind: str) -> list[dict[str, Any]]:
        """Return the manifests of a kind."""
        return self._by_kind.get((group, kind), [])

    def find(self, owner: Owner) -> dict[str, Any] | None:
        """Return the manifest of an owner; None where there is none."""
        for each in self.of_kind(owner.group, owner.kind):
            meta = each["metadata"]
            if (meta.get("namespace") or "", meta.get("name")) == (owner.namespace, owner.name):
                return each
        return None

    def everything(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Yield group, kind and metadata of every manifest."""
        for (group, kind), manifests in self._by_kind.items():
            yield from ((group, kind, each["metadata"]) for each in manifests)

    def owners(self) -> list[tuple[Owner, ObjectMeta]]:
        """Return every manifest with ownerReferences, and what may own it."""
        dependents = list[tuple[Owner, ObjectMeta]]()
        for (group, kind), manifests in self._by_kind.items():
            for each in manifests:
                meta = each["metadata"]
                if meta.get("ownerReferences"):
                    typed = msgspec.convert(_named_parts(meta), ObjectMeta)
                    dependents.append((_owner(group, kind, typed), typed))
        return dependents


def _named_parts(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parts of metadata that say who the object is."""
    names = ("name", "namespace", "uid", "ownerReferences")
    return {name: meta[name] for name in names if meta.get(name)}


def _owner(group: str, kind: str, meta: ObjectMeta) -> Owner:
    return Owner(group, kind, meta.namespace, meta.name, meta.uid)


def owner_tree(core: Core, root: Owner, manifests: Manifests) -> list[Owner]:
    """Return an owner and every owner of pods below it, itself first."""
    between = manifests.owners()
    known = {(each.group, each.kind, each.namespace, each.name) for each, _ in between}
    for lister, group, kind in _BETWEEN:
        objects: Sequence[ApiObject] = getattr(core.snapshot.listers, lister).all()
        for obj in objects:
            if (
                obj.namespace == root.namespace
                and obj.metadata.owner_references
                and (group, kind, obj.namespace, obj.name) not in known
            ):
                between.append((_owner(group, kind, obj.metadata), obj.metadata))
    tree, level = [root], [root]
    for _ in range(_LEVELS_MOST):
        level = [
            owner
            for owner, metadata in between
            if owner not in tree and any(above.owns(metadata) for above in level)
        ]
        if not level:
            break
        tree += level
    return tree


def watched_owner(core: Core, owner: Owner) -> Any:
    """Return an owner with a number of replicas as the scheduler watches it; None for others."""
    for lister, group, kind in _REPLICATED:
        if (group, kind) == (owner.group, owner.kind):
            return getattr(core.snapshot.listers, lister).get(owner.name, owner.namespace)
    return None


def pods_of(core: Core, tree: Sequence[Owner]) -> list[Pod]:
    """Return the pods that one of some owners owns, by name."""
    names = {(each.kind, each.name): each for each in tree}
    namespace = tree[0].namespace
    pods = [
        pod
        for pod in core.store.all_pods()
        if pod.metadata.namespace == namespace
        and any(
            (owner := names.get((each.kind, each.name))) is not None and owner.is_named_by(each)
            for each in pod.metadata.owner_references
        )
    ]
    return sorted(pods, key=lambda pod: pod.key)


def custom_owners(
    core: Core, manifests: Manifests, words: tuple[str, str], namespace: str
) -> list[Owner]:
    """Return the owners of a type that no table knows, as the ownerReferences name them.

    Parameters
    ----------
    words
        The type as a person writes it, singular or plural, alone or with its group; the name.
    """
    typed, name = words[0].lower(), words[1]
    metadata = [
        pod.metadata for pod in core.store.all_pods() if pod.metadata.namespace == namespace
    ]
    metadata += [meta for _, meta in manifests.owners() if meta.namespace == namespace]
    for lister, _, _ in _BETWEEN:
        objects: Sequence[ApiObject] = getattr(core.snapshot.listers, lister).all()
        metadata += [obj.metadata for obj in objects if obj.namespace == namespace]
    owners: dict[Owner, None] = {}
    for group, kind, meta in manifests.everything():
        names = (meta.get("namespace") or "", meta.get("name"))
        if names == (namespace, name) and typed in _words_for(kind, group):
            owners[Owner(group, kind, namespace, name, str(meta.get("uid") or ""))] = None
    if owners:
        return list(owners)
    for each in metadata:
        for reference in each.owner_references:
            group, _, version = reference.api_version.rpartition("/")
            if reference.name == name and typed in _words_for(reference.kind, group, version):
                owners[Owner(group, reference.kind, namespace, name)] = None
    return list(owners)


def _words_for(kind: str, group: str, version: str = "") -> set[str]:
    """Return the words by which a person may name a type."""
    word = kind.lower()
    plurals = (f"{word[:-1]}ies" if word.endswith("y") else f"{word}s", f"{word}es")
    return {
        each
        for name in (word, *plurals)
        for each in (name, f"{name}.{group}", f"{name}.{version}.{group}")
    }
