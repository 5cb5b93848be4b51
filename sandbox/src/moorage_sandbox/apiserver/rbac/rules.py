"""The calls that one rule of a role allows, and whether rules cover others.

Mirrors kubernetes v1.36 pkg/apis/rbac/v1/evaluation_helpers.go and
pkg/registry/rbac/validation/policy_compact.go, rule_compare.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

Rule = Mapping[str, Any]
"""A PolicyRule as decoded JSON."""

EVERYTHING: tuple[Rule, ...] = (
    {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]},
    {"nonResourceURLs": ["*"], "verbs": ["*"]},
)
"""The rules of ``cluster-admin``."""


class Attributes(msgspec.Struct, frozen=True, kw_only=True):
    """The attributes of a call.

    Parameters
    ----------
    verb
        ``get``, ``list``, ``watch``, ``create``, ``update``, ``patch``, ``delete``,
        ``deletecollection``; for a path outside of resources the method in lower case.
    group, resource, subresource, namespace, name
        The addressed object; all empty for a path outside of resources.
    path
        The path, where it is not the path of a resource.
    """

    verb: str
    group: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""

    @property
    def whole_resource(self) -> str:
        """The resource with its subresource, such as ``pods`` or ``pods/binding``."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


def allows(rule: Rule, wanted: Attributes) -> bool:
    """Whether a rule allows a call."""
    if not _holds(rule, "verbs", wanted.verb):
        return False
    if wanted.path:
        return any(_path_matches(each, wanted.path) for each in _list(rule, "nonResourceURLs"))
    if not _holds(rule, "apiGroups", wanted.group):
        return False
    if not _resource_matches(_list(rule, "resources"), wanted.whole_resource):
        return False
    names = _list(rule, "resourceNames")
    return not names or wanted.name in names


def not_covered(rules: Iterable[Rule], wanted: Iterable[Rule]) -> list[Rule]:
    """Return the smallest parts of wanted rules that no single rule covers."""
    held = list(rules)
    parts = [part for rule in wanted for part in _parts(rule)]
    return [part for part in parts if not any(_covers(rule, part) for rule in held)]


def _parts(rule: Rule) -> Iterator[Rule]:
    """Break a rule into rules of one verb, group, resource and name each."""
    for verb in _list(rule, "verbs"):
        for path in _list(rule, "nonResourceURLs"):
            yield {"nonResourceURLs": [path], "verbs": [verb]}
        for group in _list(rule, "apiGroups"):
            for resource in _list(rule, "resources"):
                part = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
                names = _list(rule, "resourceNames")
                if not names:
                    yield part
                for name in names:
                    yield part | {"resourceNames": [name]}


def _covers(rule: Rule, part: Rule) -> bool:
    if not _holds(rule, "verbs", part["verbs"][0]):
        return False
    for path in _list(part, "nonResourceURLs"):
        return any(_path_matches(each, path) for each in _list(rule, "nonResourceURLs"))
    if not _holds(rule, "apiGroups", part["apiGroups"][0]):
        return False
    if not _resource_matches(_list(rule, "resources"), part["resources"][0]):
        return False
    names = _list(rule, "resourceNames")
    return not names or set(_list(part, "resourceNames")) & set(names) != set()


def _resource_matches(listed: Iterable[str], wanted: str) -> bool:
    subresource = wanted.partition("/")[2]
    wildcard = f"*/{subresource}" if subresource else wanted
    return any(each in ("*", wanted, wildcard) for each in listed)


def _path_matches(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (
        pattern.endswith("*") and path.startswith(pattern.rstrip("*"))
    )


def _holds(rule: Rule, field: str, value: str) -> bool:
    listed = _list(rule, field)
    return "*" in listed or value in listed


def _list(rule: Rule, field: str) -> list[str]:
    return rule.get(field) or []
