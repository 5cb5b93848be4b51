"""Whether a policy, a binding or a webhook is about a write.

Place in the flow: `bound` asks here for each binding, and the API server for each webhook. Mirrors
kubernetes v1.36 apiserver pkg/admission/plugin/policy/matching and
pkg/admission/plugin/webhook/predicates.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import Any

import msgspec

from moorage.api.meta import LabelSelector
from moorage.api.resources import ResourceType
from moorage.api.selectors import compile_label_selector
from moorage.kinds.kind import Obj
from moorage.kinds.tree import Json, child, objects, strings, text


class Write(msgspec.Struct, frozen=True, kw_only=True):
    """A write of an object, as policies see it.

    Parameters
    ----------
    operation
        ``CREATE``, ``UPDATE``, ``DELETE`` or ``CONNECT``.
    resource
        The resource as it is called.
    versions
        Every served version of the resource.
    subresource
        ``status``, or empty.
    new, old
        The object, None when it is deleted; and the object before, None when it is new.
    namespace
        The object's namespace; None for an object without one.
    """

    operation: str
    resource: ResourceType
    versions: frozenset[str]
    subresource: str
    new: Obj | None
    old: Obj | None
    namespace: Obj | None

    @property
    def obj(self) -> Obj:
        """The object after the write, or before it where it is deleted."""
        return self.new or self.old or {}

    def with_new(self, new: Obj) -> Write:
        """Return the write with another object."""
        return msgspec.structs.replace(self, new=new)


def matches(wanted: Json, write: Write) -> bool:
    """Whether ``matchConstraints`` of a policy, or ``matchResources`` of a binding, hold."""
    rules, excluded = objects(wanted, "resourceRules"), objects(wanted, "excludeResourceRules")
    exact = wanted.get("matchPolicy") == "Exact"
    versions = {write.resource.version} if exact else write.versions
    group = write.resource.group
    if rules and not any(_covers(rule, write, group, versions) for rule in rules):
        return False
    if any(_covers(rule, write, group, versions) for rule in excluded):
        return False
    return _selected(wanted, write)


def resource_for(
    webhook: Json, write: Write, equivalents: Iterable[ResourceType]
) -> ResourceType | None:
    """Return the resource as which a webhook sees a write; None for a write it is not called for.

    A rule for the resource of the call comes first. By the match policy ``Equivalent``, the first
    rule for another name of the same objects counts, too: the object is converted to its version.

    Parameters
    ----------
    webhook
        The webhook as it is stored.
    write
        The write.
    equivalents
        The resources with the same objects: other versions, and the Events of the other group.
    """
    rules = objects(webhook, "rules")
    others = () if webhook.get("matchPolicy") == "Exact" else equivalents
    ordered = sorted(others, key=lambda each: (each.group, each.version))
    resource = next(
        (
            resource
            for wanted in ([write.resource], ordered)
            for rule in rules
            for resource in wanted
            if _covers(rule, write, resource.group, {resource.version})
        ),
        None,
    )
    return resource if resource and _selected(webhook, write) else None


def _selected(wanted: Json, write: Write) -> bool:
    """Whether the selectors of namespaces and objects hold."""
    return _in_namespace(child(wanted, "namespaceSelector"), write) and any(
        _selects(child(wanted, "objectSelector"), obj) for obj in (write.new, write.old)
    )


def _covers(rule: Json, write: Write, group: str, versions: AbstractSet[str]) -> bool:
    resource = write.resource
    called = resource.plural + (f"/{write.subresource}" if write.subresource else "")
    names = strings(rule, "resourceNames")
    return (
        _has(rule, "operations", {write.operation})
        and _has(rule, "apiGroups", {group})
        and _has(rule, "apiVersions", versions)
        and any(_same_resource(each, called) for each in strings(rule, "resources"))
        and text(rule, "scope") in ("", "*", "Namespaced" if resource.namespaced else "Cluster")
        and (not names or text(write.obj, "metadata", "name") in names)
    )


def covers_creation(rule: Json, group: str, called: str) -> bool:
    """Whether a rule is about the creation of a resource, in any version and namespace.

    Parameters
    ----------
    group, called
        The API group, and the resource with its subresource, as in ``pods/eviction``.
    """
    return (
        _has(rule, "operations", {"CREATE"})
        and _has(rule, "apiGroups", {group})
        and any(_same_resource(each, called) for each in strings(rule, "resources"))
    )


def _has(rule: Json, key: str, values: Any) -> bool:
    listed = strings(rule, key)
    return "*" in listed or not values.isdisjoint(listed)


def _same_resource(pattern: str, called: str) -> bool:
    """Whether ``pods``, ``*``, ``pods/*``, ``*/status`` or ``*/*`` stands for a resource."""
    plural, _, sub = called.partition("/")
    wanted, slash, wanted_sub = pattern.partition("/")
    if wanted not in ("*", plural):
        return False
    return wanted_sub in ("*", sub) if slash else not sub


def _in_namespace(selector: Json, write: Write) -> bool:
    resource = write.resource
    if (resource.group, resource.plural) == ("", "namespaces"):
        return _selects(selector, write.obj)
    return write.namespace is None or _selects(selector, write.namespace)


def _selects(selector: Json, obj: Obj | None) -> bool:
    if obj is None:
        return False
    matcher = compile_label_selector(msgspec.convert(selector, LabelSelector))
    return matcher.matches(child(obj, "metadata", "labels"))
