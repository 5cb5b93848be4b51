"""Keeps the rules of cluster roles that are made of other roles.

Upstream a controller keeps them (kubernetes v1.36 pkg/controller/clusterroleaggregation); here the
rules follow every write at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from moorage.api.codec import from_dict
from moorage.api.meta import LabelSelector
from moorage.api.resources import CLUSTER_ROLES
from moorage.api.selectors import NOTHING, Selector, compile_label_selector
from moorage.base.errors import DecodeError
from moorage.kinds.kind import Obj
from moorage_sandbox.apiserver.catalog import Served
from moorage_sandbox.apiserver.world import World
from moorage_sandbox.storage.record import Record


class Aggregation:
    """Writes the rules of aggregated roles whenever a cluster role is written.

    An aggregated role has the rules of the plain roles that it selects, directly or through other
    aggregated roles. Each rule is listed once, in the order in which it is found. So roles may
    select each other in a circle, and a revoked rule disappears from all roles of the circle. The
    cost is that of reading every label once and of writing the roles that change, whose rules are
    joined as bytes.

    Parameters
    ----------
    world
        The resources of the server, which include the roles.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._shelf = world.store.shelf(CLUSTER_ROLES.qualified)
        # Name -> role as it was read last; a role whose record has changed is read again.
        self._known: dict[str, _Role] = {}
        self._writing = False
        world.on_write(CLUSTER_ROLES.qualified, self._written)

    def _written(self, served: Served, before: Record | None, after: Record | None) -> None:
        # Each write of this module is reported to this module as a change.
        if self._writing:
            return
        self._writing = True
        try:
            self._follow(served, before, after)
        finally:
            self._writing = False

    def _follow(self, served: Served, before: Record | None, after: Record | None) -> None:
        """Write again the roles that have rules of a written role, directly or indirectly."""
        roles = self._read_roles()
        parts = _parts(roles)
        changed = {record.name for record in (before, after) if record is not None}
        if before is not None:
            changed.update(name for name, role in roles.items() if role.selects(before))
        for name in _reached(changed, parts):
            role = roles[name]
            rules = b"[" + b",".join(_collected(name, roles, parts)) + b"]"
            if rules != role.rules:
                record = self._world.store_form(served, role.with_rules(rules))
                roles[name] = msgspec.structs.replace(role, record=record, rules=rules)

    def _read_roles(self) -> dict[str, _Role]:
        """Return every role by name, in order."""
        known, self._known = self._known, {}
        for record in self._shelf.records():
            role = known.get(record.name)
            if role is None or role.record is not record:
                role = _read(record)
            self._known[record.name] = role
        return self._known


class _Role(msgspec.Struct, frozen=True):
    """A cluster role.

    Parameters
    ----------
    record
        The role as it is stored.
    selectors
        The selectors of the collected roles, each with its ``matchLabels``; empty for a plain role.
    rules
        The rules of the role as JSON.
    each_rule
        The rules of a plain role one by one, equal ones in equal bytes.
    """

    record: Record
    selectors: list[tuple[Mapping[str, str], Selector]]
    rules: bytes
    each_rule: list[bytes]

    def selects(self, record: Record) -> bool:
        """Whether the role collects the rules of another role."""
        return record.name != self.record.name and any(
            selector.matches(record.labels) for _, selector in self.selectors
        )

    def with_rules(self, rules: bytes) -> Obj:
        """Return the role with other rules, which stay bytes."""
        obj: Obj = _decode_fields(self.record.data)
        obj["metadata"] = msgspec.json.decode(obj["metadata"])
        return obj | {"rules": msgspec.Raw(rules)}


_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def _read(record: Record) -> _Role:
    fields = _decode_fields(record.data)
    rules = fields.get("rules", msgspec.Raw(b"[]"))
    found = msgspec.json.decode(fields.get("aggregationRule", b"null")) or {}
    selectors = [
        (each.get("matchLabels") or {}, _compiled(each))
        for each in found.get("clusterRoleSelectors") or ()
    ]
    each_rule = []
    if not selectors:
        decoded = msgspec.json.decode(rules) or []
        each_rule = [msgspec.json.encode(rule, order="sorted") for rule in decoded]
    return _Role(record, selectors, bytes(rules), each_rule)


def _parts(roles: dict[str, _Role]) -> dict[str, list[str]]:
    """Return the names of the roles that each aggregated role selects, in order."""
    by_label: dict[tuple[str, str], list[_Role]] = {}
    for role in roles.values():
        for label in role.record.labels.items():
            by_label.setdefault(label, []).append(role)
    parts = {}
    for name, role in roles.items():
        if not role.selectors:
            continue
        names: set[str] = set()
        for labels, selector in role.selectors:
            # A single label leaves few roles to look at.
            candidates: Iterable[_Role] = roles.values()
            if labels:
                candidates = by_label.get(next(iter(labels.items())), ())
            names.update(
                each.record.name for each in candidates if selector.matches(each.record.labels)
            )
        parts[name] = sorted(names - {name})
    return parts


def _reached(changed: set[str], parts: dict[str, list[str]]) -> list[str]:
    """Return the aggregated roles that have rules of changed roles, in order."""
    collectors: dict[str, list[str]] = {}
    for name, selected in parts.items():
        for each in selected:
            collectors.setdefault(each, []).append(name)
    reached = set(changed)
    todo = sorted(changed)
    while todo:
        for name in collectors.get(todo.pop(), ()):
            if name not in reached:
                reached.add(name)
                todo.append(name)
    return [name for name in parts if name in reached]


def _collected(name: str, roles: dict[str, _Role], parts: dict[str, list[str]]) -> list[bytes]:
    """Return the rules of all plain roles that a role collects, each once."""
    rules: dict[bytes, None] = {}
    known_rules: set[str] = set()
    # A stack of our own, because a chain of roles may be longer than Python's stack allows.
    todo = [name]
    while todo:
        each = todo.pop()
        if each in known_rules:
            continue
        known_rules.add(each)
        rules.update(dict.fromkeys(roles[each].each_rule))
        todo.extend(reversed(parts.get(each, ())))
    return list(rules)


def _compiled(selector: Obj) -> Selector:
    """Compile a selector; an invalid one, stored by an earlier version, selects nothing."""
    try:
        return compile_label_selector(from_dict(LabelSelector, selector))
    except (DecodeError, ValueError):
        return NOTHING
