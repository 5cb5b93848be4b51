"""The objects of the cluster that the body of a question names.

The caller must be allowed to read them, or the answer would say whether they exist.
"""

from __future__ import annotations

from collections.abc import Iterator

from moorage.api.resources import ResourceType, by_kind, by_name
from moorage.service.questions.question import Readable
from moorage.what_if.change import AddNode, Apply, Change, Delete, Scale, SetPriority
from moorage.what_if.wire import CapacityBody, Manifest, WhatIfBody


def names_in(body: WhatIfBody | CapacityBody) -> list[Readable]:
    """Return the objects that a body names, each once, sorted."""
    found = _changed(body.changes) if isinstance(body, WhatIfBody) else _capacity_names(body)
    return sorted(set(found), key=lambda each: (each.resource, each.namespace, each.name))


def _changed(changes: tuple[Change, ...]) -> Iterator[Readable]:
    for change in changes:
        if isinstance(change, AddNode):
            yield Readable("nodes", name=_name(change.manifest))
        elif isinstance(change, Apply):
            yield _written(change.manifest, change.namespace)
        elif isinstance(change, Scale | Delete):
            yield _readable(by_name(change.kind), change.kind, change.namespace, change.name)
        elif isinstance(change, SetPriority):
            yield Readable("pods", "", change.namespace, change.name)
        else:
            yield Readable("nodes", name=change.name)


def _capacity_names(body: CapacityBody) -> Iterator[Readable]:
    if body.like:
        kind, _, name = body.like.partition("/")
        yield _readable(by_name(kind), kind, body.namespace, name)
    for manifest in body.mix:
        yield _written(manifest, body.namespace)


def _written(manifest: Manifest, namespace: str) -> Readable:
    """Return the object that a manifest describes."""
    kind = str(manifest.get("kind") or "")
    resource = by_kind(kind, str(manifest.get("apiVersion") or "")) or by_name(kind)
    return _readable(resource, kind, _name(manifest, "namespace") or namespace, _name(manifest))


def _name(manifest: Manifest, field: str = "name") -> str:
    metadata = manifest.get("metadata")
    return str(metadata.get(field) or "") if isinstance(metadata, dict) else ""


def _readable(resource: ResourceType | None, kind: str, namespace: str, name: str) -> Readable:
    if resource is None:
        # Nobody but a caller of all rights has one for a kind that is not known.
        return Readable(kind.lower(), namespace=namespace, name=name)
    where = namespace if resource.namespaced else ""
    return Readable(resource.plural, resource.group, where, name)
