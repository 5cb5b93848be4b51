"""Composite groups: PodGroups, and groups of them, that are scheduled as one group.

Part of the in-tree group source. The composite group at the top is the group of all pods below it:
one key, one attempt, one place in the queue. Its demands have the other groups as their parts.

Facts: kubernetes v1.37 ``staging/src/k8s.io/api/scheduling/v1alpha3/types.go``.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from itertools import islice
from typing import Final, NamedTuple

import msgspec

from moorage.api.pod_group import CompositePodGroup, PodGroup
from moorage.snapshot.listers import Lister
from moorage.snapshot.pod_groups import GroupKey, GroupTerms
from moorage.snapshot.sub_groups.parts import Part, Parts

LEVELS_MAX: Final = 4
"""Levels of a tree, PodGroups included; the API of Workload allows no more."""


class GroupNode(NamedTuple):
    """A PodGroup or composite group in a tree."""

    namespace: str
    name: str
    composite: bool


class CompositeGroups:
    """The trees of groups, as the objects name their parents.

    Nothing is computed anew but the trees of objects that have changed.

    Parameters
    ----------
    groups, composites
        The objects.
    """

    def __init__(self, groups: Lister[PodGroup], composites: Lister[CompositePodGroup]) -> None:
        self._groups = groups
        self._composites = composites
        self._positions = [-1, -1]  # positions in the logs of both listers
        self._parents: dict[GroupNode, str] = {}
        self._children: dict[GroupNode, dict[GroupNode, None]] = {}
        self._moved: dict[GroupKey, None] = {}
        self._terms: dict[GroupKey, GroupTerms] = {}

    def root_of(self, namespace: str, name: str, *, composite: bool = False) -> GroupKey:
        """Return the key of the group at the top of a PodGroup or composite group.

        It need not exist. A PodGroup that is no part of another group is its own.
        """
        self._catch_up()
        return self._root(GroupNode(namespace, name, composite))

    def terms_of(self, key: GroupKey) -> GroupTerms | None:
        """Return the demands of a composite group, None while there is no such object."""
        self._catch_up()
        terms = self._terms.get(key)
        if terms is None:
            terms = self._made_terms(key)
            if terms is not None:
                self._terms[key] = terms
        return terms

    def nodes_of(self, key: GroupKey) -> Iterator[GroupNode]:
        """Yield a composite group and all groups below it, each after the group that it is in."""
        self._catch_up()
        left, known = [GroupNode(key.namespace, key.name, composite=True)], set[GroupNode]()
        while left:
            node = left.pop()
            if node not in known:
                known.add(node)
                yield node
                left += reversed(self._children.get(node, {}))

    def take_moved(self) -> Collection[GroupKey]:
        """Return the groups whose pods may be in another group since the last call."""
        self._catch_up()
        moved, self._moved = self._moved, {}
        return moved

    # -- the trees -----------------------------------------------------------------------------

    def _catch_up(self) -> None:
        logs = self._groups.log, self._composites.log
        if self._positions == [log.position for log in logs]:
            return
        for index, log in enumerate(logs):
            changed = None if self._positions[index] < 0 else log.since(self._positions[index])
            self._positions[index] = log.position
            for namespace, name in self._all_names(index) if changed is None else changed:
                self._take(GroupNode(namespace, name, composite=bool(index)))

    def _all_names(self, composite: int) -> Collection[tuple[str, str]]:
        """Return the names of all objects of a kind, and of those that were there before."""
        objects = self._composites.all() if composite else self._groups.all()
        here = ((each.metadata.namespace, each.metadata.name) for each in objects)
        known = (node[:2] for node in self._parents if node.composite == bool(composite))
        return dict.fromkeys((*known, *here))

    def _take(self, node: GroupNode) -> None:
        """Take in that an object has come, changed or gone."""
        before, root = self._parents.get(node, ""), self._root(node)
        self._terms.pop(root, None)
        obj = self._object(node)
        parent = "" if obj is None else obj.spec.parent_composite_pod_group_name
        if parent == before:
            return
        self._moved[root] = None
        if before:
            siblings = self._children[_above(node, before)]
            del siblings[node], self._parents[node]
            if not siblings:
                del self._children[_above(node, before)]
        if parent:
            self._parents[node] = parent
            self._children.setdefault(_above(node, parent), {})[node] = None
        self._terms.pop(self._root(node), None)

    def _root(self, node: GroupNode) -> GroupKey:
        """Return the key of the group at the top; in a circle it is that with the least name."""
        known = dict[GroupNode, None]()
        while parent := self._parents.get(node):
            if node in known:
                in_circle = list(known)[list(known).index(node) :]
                node = min(in_circle)
                break
            known[node] = None
            node = _above(node, parent)
        return GroupKey(node.namespace, node.name, composite=node.composite)

    # -- the demands ---------------------------------------------------------------------------

    def _made_terms(self, key: GroupKey) -> GroupTerms | None:
        composite = self._composites.get(key.name, key.namespace)
        if composite is None:
            return None
        root = self._part(GroupNode(key.namespace, key.name, composite=True), LEVELS_MAX)
        assert root is not None, "the tree has levels"
        topology_key, spec = root.topology_key, composite.spec
        # The topology of the whole is that of the group, as without parts.
        root = msgspec.structs.replace(root, topology_key="")
        return GroupTerms(
            key=key,
            uid=composite.metadata.uid,
            minimum=max(1, root.missing({})),
            gang=True,
            priority=spec.priority or 0,
            topology_key=topology_key,
            evicted_whole=spec.disrupted_whole,
            fault=self._fault(key, composite),
            created=composite.metadata.creation_timestamp or "",
            parts=Parts(root=root),
        )

    def _part(self, node: GroupNode, levels: int) -> Part | None:
        """Return a group as a part; None where the tree has too many levels."""
        if levels == 0:
            return None
        if not node.composite:
            group = self._groups.get(node.name, node.namespace)
            assert group is not None, f"{node} has a parent"
            gang = group.spec.scheduling_policy.gang
            return Part(
                name=node.name,
                minimum=1 if gang is None else gang.min_count,
                topology_key=group.spec.topology_key,
            )
        composite = self._composites.get(node.name, node.namespace)
        assert composite is not None, f"{node} has a parent"
        parts = [self._part(each, levels - 1) for each in self._children.get(node, ())]
        policy = composite.spec.scheduling_policy.gang
        return Part(
            name=node.name,
            minimum=1 if policy is None else policy.min_group_count,
            topology_key=composite.spec.topology_key,
            of_parts=True,
            parts=tuple(each for each in parts if each is not None),
        )

    def _fault(self, key: GroupKey, composite: CompositePodGroup) -> str:
        """Return why a composite group is not scheduled at all; "" if it may be."""
        name = f"composite pod group {key.full_name}"
        if composite.spec.parent_composite_pod_group_name:
            return f"{name} is a part of itself: its parents form a circle"
        node = GroupNode(key.namespace, key.name, composite=True)
        if self._levels(node, LEVELS_MAX + 1) > LEVELS_MAX:
            return f"{name} has more than {LEVELS_MAX} levels of groups"
        if not composite.spec.disrupted_whole:
            for part in islice(self.nodes_of(key), 1, None):
                obj = self._object(part)
                if obj is not None and obj.spec.disrupted_whole:
                    return (
                        f"{name} has a group with disruptionMode all ({part.name}), and is not of "
                        "that mode itself: groups below are not evicted as a whole"
                    )
        return ""

    def _object(self, node: GroupNode) -> PodGroup | CompositePodGroup | None:
        """Return the object of a group; one that has a parent has an object."""
        if node.composite:
            return self._composites.get(node.name, node.namespace)
        return self._groups.get(node.name, node.namespace)

    def _levels(self, node: GroupNode, most: int) -> int:
        """Return how many levels of groups a tree has, or `most` if it has more."""
        if most <= 1:
            return 1
        below = (self._levels(each, most - 1) for each in self._children.get(node, ()))
        return 1 + max(below, default=0)


def _above(node: GroupNode, parent: str) -> GroupNode:
    return GroupNode(node.namespace, parent, composite=True)
