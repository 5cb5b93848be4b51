"""Masks of the nodes that can reach a volume, a class or a CSIStorageCapacity.

The masks come from node affinities of volumes, allowed topologies of classes and topologies of
CSIStorageCapacity. They are computed from the label columns and kept until the columns change.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.api.meta import LabelSelector, NodeSelector
from moorage.api.selectors import (
    NodeMatcher,
    Operator,
    Requirement,
    compile_label_selector,
    compile_node_selector,
    make_requirement,
)
from moorage.api.volume import PersistentVolume, TopologySelectorTerm
from moorage.plugins.answers import NodeAnswers
from moorage.plugins.nodes.terms import TermQuestion
from moorage.plugins.volumes.claims import VolumeError
from moorage.plugins.volumes.translation import migrated_plugins, source_of, translated_affinity
from moorage.snapshot.snapshot import Snapshot

BoolArray = NDArray[np.bool_]
RowArray = NDArray[np.int64]
Terms = tuple[tuple[Requirement, ...], ...]
"""Conjunctions of label requirements; one must hold. An empty conjunction always holds."""

# Guess: a few times the distinct affinities of a large cluster with local disks.
_KEPT_MAX: Final = 32768

# Guess: 5 MB of answers at 5000 nodes.
_MASKS_MAX: Final = 1024

_encode = msgspec.json.Encoder().encode


class Reach(msgspec.Struct, frozen=True, cache_hash=True):
    """The conditions under which a node can reach a volume; a key for grouping volumes.

    Parameters
    ----------
    terms
        Requirements on the node's labels; None means that every node reaches the volume.
    plugin
        In-tree plugin of the volume; "" for other volumes.
    migrated
        The terms that hold on nodes whose CSINode lists the plugin as migrated.
    fault
        Why nodes with the migrated plugin cannot use the volume; "" when they can.
    """

    terms: Terms | None
    plugin: str = ""
    migrated: Terms | None = None
    fault: str = ""

    def reaches_node(self, labels: dict[str, str], plugins: frozenset[str]) -> bool:
        """Whether a node with these labels and migrated in-tree plugins reaches the volume.

        Raises
        ------
        VolumeError
            The volume cannot be translated for this node.
        """
        moved = bool(self.plugin) and self.plugin in plugins
        if moved and self.fault:
            raise VolumeError(self.fault)
        terms = self.migrated if moved else self.terms
        return terms is None or any(all(r.matches(labels) for r in term) for term in terms)


def terms_of(selector: NodeSelector | None) -> Terms | None:
    """Return the label terms of a volume's node affinity; None when it has none.

    Valid conditions on fields are left out. An invalid term never holds.
    """
    if selector is None:
        return None
    matcher: NodeMatcher = compile_node_selector(selector)
    return tuple(term.labels for term in matcher.terms if term.error is None)


def topology_terms(allowed: Sequence[TopologySelectorTerm]) -> Terms | None:
    """Return the allowed topologies of a class as terms; None when every node is allowed."""
    if not allowed:
        return None
    terms = []
    for term in allowed:
        if not term.match_label_expressions:
            continue
        try:
            terms.append(
                tuple(
                    make_requirement(item.key, Operator.IN, item.values)
                    for item in term.match_label_expressions
                )
            )
        except ValueError:
            continue
    return tuple(terms)


def capacity_terms(selector: LabelSelector | None) -> Terms:
    """Return a CSIStorageCapacity's topology as terms; no terms, so no node matches, if unset."""
    if selector is None:
        return ()
    try:
        compiled = compile_label_selector(selector)
    except ValueError:
        return ()
    return () if compiled.nothing else (compiled.requirements,)


class NodeMasks:
    """Masks over all rows, kept until labels, rows or CSINodes change.

    Parameters
    ----------
    snapshot
        The cluster.
    """

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._questions: dict[Terms, tuple[TermQuestion, ...]] = {}
        self._masks: NodeAnswers[Terms, BoolArray] = NodeAnswers(snapshot, _MASKS_MAX)
        self._rows: dict[Reach, RowArray] = {}
        self._by_affinity: dict[bytes, Reach] = {}
        self._reach: dict[str, tuple[PersistentVolume, Reach]] = {}
        self._columns: dict[str, NDArray[np.int64]] = {}
        self._looked_at = (-1, -1, -1)
        self._moved_at = (-1, -1)
        self._moved: dict[str, BoolArray] = {}
        self.epoch = 0
        """Increases when the results of `reached_rows` may have changed."""

    def mask(self, terms: Terms | None) -> BoolArray | None:
        """Return bool, (n,): rows where any term holds; None for every row.

        The caller must not change the mask: the mask is kept until a node changes.
        """
        if terms is None or not all(terms):  # an empty term holds everywhere
            return None
        found = self._masks.find(terms)
        if found is not None:
            return found
        if terms not in self._questions:
            if len(self._questions) >= _KEPT_MAX:
                self._questions.clear()
            self._questions[terms] = tuple(TermQuestion(labels) for labels in terms)
        view, result = self._snapshot.all(), np.zeros(self._snapshot.num_nodes, np.bool_)
        for question in self._questions[terms]:
            held = question.holds(self._snapshot, view)
            assert held is not None, "a term that asks something answers for every row"
            result |= held
        return self._masks.keep(terms, result)

    def reach(self, volume: PersistentVolume) -> Reach:
        """Return the conditions under which a node reaches a volume."""
        kept = self._reach.get(volume.name)
        if kept is not None and kept[0] is volume:
            return kept[1]
        if len(self._reach) >= _KEPT_MAX:
            self._reach.clear()
        found = self._reach_of(volume)
        self._reach[volume.name] = (volume, found)
        return found

    def _reach_of(self, volume: PersistentVolume) -> Reach:
        """Compile a volume's reach; CSI volumes of one zone share one result."""
        if volume.spec.csi is None and source_of(volume) is not None:
            return reach_of(volume)
        key = _encode(volume.spec.node_affinity)
        reach = self._by_affinity.get(key)
        if reach is None:
            if len(self._by_affinity) >= _KEPT_MAX:
                self._by_affinity.clear()
            reach = self._by_affinity[key] = reach_of(volume)
        return reach

    def reached(self, reach: Reach) -> BoolArray | None:
        """Return bool, (n,): the nodes that reach a volume; None for every node.

        Raises
        ------
        VolumeError
            The volume cannot be translated for a node that lists its plugin as migrated.
        """
        mask = self.mask(reach.terms)
        if not reach.plugin:
            return mask
        moved = self._migrated(reach.plugin)
        if not moved.any():
            return mask
        if reach.fault:
            raise VolumeError(reach.fault)
        there = self.mask(reach.migrated)
        everywhere = np.ones(len(moved), np.bool_)
        return np.where(
            moved,
            everywhere if there is None else there,
            everywhere if mask is None else mask,
        )

    def reached_rows(self, reach: Reach) -> RowArray:
        """Return the nodes of `reached` as ascending rows; call `refresh` before this method."""
        rows = self._rows.get(reach)
        if rows is None:
            mask = self.reached(reach)
            rows = np.arange(self._snapshot.num_nodes) if mask is None else np.flatnonzero(mask)
            self._rows[reach] = rows
            for terms in (reach.terms or (), reach.migrated or ()):
                for requirement in (r for term in terms for r in term):
                    self._keep_column(requirement.key)
        return rows

    def refresh(self) -> None:
        """Forget kept rows if relevant labels, rows or CSINodes changed."""
        table = self._snapshot.table
        csi_nodes = self._snapshot.listers.csi_nodes.generation
        now = (table.columns.structure, table.node_log.position, csi_nodes)
        if now == self._looked_at:
            return
        structure, _, csi_before = self._looked_at
        self._looked_at = now
        if (structure, csi_before) == (now[0], csi_nodes) and all(
            np.array_equal(self._snapshot.label_column(key).ids, kept)
            for key, kept in self._columns.items()
        ):
            return
        self._rows.clear()
        self._columns.clear()
        self.epoch += 1

    def _keep_column(self, key: str) -> None:
        if key not in self._columns:
            self._columns[key] = self._snapshot.label_column(key).ids.copy()

    def _migrated(self, plugin: str) -> BoolArray:
        """Return bool, (n,): the nodes that list a plugin as migrated; not to be changed."""
        csi_nodes = self._snapshot.listers.csi_nodes
        now = (self._snapshot.table.columns.structure, csi_nodes.generation)
        if now != self._moved_at:
            self._moved_at = now
            self._moved.clear()
        migrated_n = self._moved.get(plugin)
        if migrated_n is None:
            names = self._snapshot.names
            moved = (plugin in migrated_plugins(csi_nodes.get(name)) for name in names)
            migrated_n = self._moved[plugin] = np.fromiter(
                moved, np.bool_, self._snapshot.num_nodes
            )
        return migrated_n


def reach_of(volume: PersistentVolume) -> Reach:
    """Compile the conditions under which a node reaches a volume."""
    affinity = volume.spec.node_affinity
    terms = terms_of(None if affinity is None else affinity.required)
    source = source_of(volume)
    if source is None:
        return Reach(terms)
    try:
        moved = terms_of(translated_affinity(volume, source[0]))
    except VolumeError as fault:
        return Reach(terms, source[0], None, str(fault))
    return Reach(terms, source[0], moved)
