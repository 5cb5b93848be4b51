"""The cluster as one attempt sees it: columns, sets, labels, pods, nominations.

There is no copy: the columns are kept current between attempts, and no attempt awaits between
reading them and assuming its pod. An attempt with HTTP extenders reads them twice: before its calls
to extenders and after the answers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.api.node import Node, Taint
from moorage.snapshot.affinity_terms import AffinityTerms
from moorage.snapshot.claim_table import ClaimTable
from moorage.snapshot.key_log import KeyLog
from moorage.snapshot.labels import LabelColumn
from moorage.snapshot.listers import Listers
from moorage.snapshot.node_info import NodeInfo
from moorage.snapshot.nominated_rows import NominatedLevel, NominatedRows, NominatedSums
from moorage.snapshot.pod_columns import CountKey
from moorage.snapshot.pod_groups import PodGroups
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.resource_columns import ResourceColumns
from moorage.snapshot.sets import SetColumn
from moorage.snapshot.sub_groups.composite import CompositeGroups
from moorage.snapshot.table import NodeTable, PortSet
from moorage.snapshot.trial import Trial
from moorage.snapshot.view import NodeView
from moorage.snapshot.volume_pods import VolumePods

Nominations = Mapping[str, Sequence[PodInfo]]


def _maybe() -> bool:
    return True


def _unknown_victims(uid: str) -> frozenset[str] | None:
    del uid
    return None


class Snapshot(ResourceColumns):
    """The cluster as plugins read it. Arrays are read-only and valid until the table's next change.

    Parameters
    ----------
    table
        The columns; a new, empty table when not given.
    listers
        Indexes of the other kinds; new, empty ones when not given.
    nominations
        Pods nominated to a node, by node name.
    nominations_log
        Names of nodes whose nominated pods changed; None without such a log.
    only_nominated
        Whether the pod of this uid is the only pod nominated to a node of this name, told without
        reading the nominations; None without such a function.
    victims_of
        Returns the uids of the pods evicted for the nominated pod of a uid; None for another pod,
        or where victims are not known. Also an attribute.
    groups
        Pod groups, and which of their members have a place; without a source when not given.
    nominated_everywhere
        Whether a nominated pod counts for every node that it concerns, by affinity, spread or a
        claim; whether a group that preempts as a whole nominates its members; and whether the
        victims of a member count as gone for the next member. False is kube-scheduler's way, for
        its recordings: a nominated pod counts on its own node only.

    Attributes
    ----------
    claims
        Resource claims, including changes not yet in the lister.
    may_repel
        Whether any nominated pod may have required anti-affinity, told without reading the
        nominations. Always, until somebody who knows sets it.
    composites
        The trees of composite groups; None, until it is set, where they are not scheduled.
    companions
        Columns that plugins keep next to the snapshot's own, under keys of theirs: the plugins of
        all profiles find the same object.
    """

    def __init__(
        self,
        table: NodeTable | None = None,
        listers: Listers | None = None,
        *,
        nominations: Nominations | None = None,
        nominations_log: KeyLog[str] | None = None,
        only_nominated: Callable[[str, str], bool] | None = None,
        victims_of: Callable[[str], frozenset[str] | None] = _unknown_victims,
        groups: PodGroups | None = None,
        nominated_everywhere: bool = True,
    ) -> None:
        super().__init__(NodeTable() if table is None else table)
        self.names: Sequence[str] = self.table.names
        """Node names by row."""
        self.affinity_terms: AffinityTerms = self.table.terms
        """The affinity terms of pods on nodes, each distinct one once."""
        self._all = NodeView(self.num_nodes)
        self.listers = Listers() if listers is None else listers
        self.claims = ClaimTable(self.listers.resource_claims)
        self.nominations: Nominations = {} if nominations is None else nominations
        self.nominations_log = nominations_log
        self.only_nominated = only_nominated
        self.may_repel: Callable[[], bool] = _maybe
        self.may_spread: Callable[[], bool] = _maybe
        self.victims_of = victims_of
        self.nominated_everywhere = nominated_everywhere
        self._nominated = NominatedRows(self.table)
        self.companions: dict[Hashable, object] = {}
        self.groups = PodGroups() if groups is None else groups
        self.composites: CompositeGroups | None = None

    # -- rows ----------------------------------------------------------------------------------

    @property
    def num_nodes(self) -> int:
        """Number of nodes."""
        return self.table.columns.n

    def row_of(self, name: str) -> int | None:
        """Return the row of a node, or None when there is no such node."""
        return self.table.row_of(name)

    def node(self, row: int) -> Node:
        """Return the API object of a row."""
        return self.table.nodes[row]

    def node_info(self, row: int) -> NodeInfo:
        """Return the scalar facade of a row."""
        return NodeInfo(self.table, row)

    def pods(self, row: int) -> Iterable[PodInfo]:
        """Return the pods counted on a row."""
        return self.table.pods_by_row[row].values()

    def all(self) -> NodeView:
        """Return the view of every row."""
        if self._all.size_of_all != self.table.columns.n:
            self._all = NodeView(self.table.columns.n)
        return self._all

    def rows(self, rows: Sequence[int] | NDArray[np.int64]) -> NodeView:
        """Return the view of these rows, in this order."""
        return NodeView(self.num_nodes, np.asarray(rows, np.int64))

    def search_order(self) -> NDArray[np.int64]:
        """Return int64, (n,): every row, in the order in which kube-scheduler looks at nodes."""
        return self.table.order.rows(self.row_of, self.table.columns.structure)

    # -- sets, labels, images, counts ----------------------------------------------------------

    @property
    def taint_sets(self) -> SetColumn[tuple[Taint, ...]]:
        """The taints of each node, in the node's order."""
        return self.table.taints

    @property
    def feature_sets(self) -> SetColumn[frozenset[str]]:
        """The declared features of each node."""
        return self.table.features

    @property
    def port_sets(self) -> SetColumn[PortSet]:
        """The used host ports of each node as (ip, protocol, port)."""
        return self.table.ports

    def label_column(self, key: str) -> LabelColumn:
        """Return the values of a label key over all nodes."""
        return self.table.label_column(key)

    def image_presence(self, name: str) -> NDArray[np.bool_]:
        """Return bool, (n,): whether each node has the image."""
        return self.table.images.presence(name, self.table.image_sizes_by_row())

    def image_state(self, name: str) -> tuple[int, int] | None:
        """Return (size in bytes, nodes that have it), or None when no node has it."""
        return self.table.images.state(name)

    @property
    def image_epoch(self) -> int:
        """Rises whenever images or the number of nodes changed."""
        return self.table.images.epoch

    def count_column(self, key: CountKey) -> NDArray[np.int64]:
        """Return int64, (n,): pods on each node that match a selector; kept by increments."""
        return self.table.pods.counts(key)

    @property
    def volume_pods(self) -> VolumePods:
        """The pods on nodes that have volumes other pods may clash with."""
        return self.table.volume_pods

    def nominated_among(
        self, pod: PodInfo, rows: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NominatedSums]:
        """Return the positions of rows where nominated pods need room, and the pods' sums.

        Parameters
        ----------
        pod
            The pod that leaves the room.
        rows
            int64, each row at most once, in any order.
        """
        self._nominated.follow(self.nominations, self.nominations_log)
        return self._nominated.among(pod, rows)

    def nominated_before(self, pod: PodInfo) -> Iterator[tuple[int, PodInfo]]:
        """Yield the nominated pods for which a pod must leave room anywhere, each with its row."""
        if not self.nominations or not self.nominated_everywhere:
            return iter(())
        self._nominated.follow(self.nominations, self.nominations_log)
        return self._nominated.before(pod)

    @property
    def any_nominated_repels(self) -> bool:
        """Whether any nominated pod has required anti-affinity that counts everywhere."""
        if not self.may_repel():
            return False  # each attempt asks, and most nominated pods have none
        if not self.nominations or not self.nominated_everywhere:
            return False
        self._nominated.follow(self.nominations, self.nominations_log)
        return self._nominated.any_repels

    @property
    def any_nominated_spreads(self) -> bool:
        """Whether any nominated pod has a hard spread of its own that counts everywhere."""
        if not self.may_spread() or not self.nominations or not self.nominated_everywhere:
            return False  # each attempt asks, and most nominated pods have none
        self._nominated.follow(self.nominations, self.nominations_log)
        return self._nominated.any_spreads

    def nominated_level(self, pod: PodInfo) -> tuple[NominatedLevel, int | None]:
        """Return the sums of all pods nominated first, and the row the pod itself is nominated to.

        The sums of that row may include the pod itself. The row is None when the pod has no
        nomination.
        """
        self._nominated.follow(self.nominations, self.nominations_log)
        own = self._nominated.own(pod)
        return self._nominated.level(pod.priority), None if own is None else own[0]

    # -- what if -------------------------------------------------------------------------------

    @property
    def changes(self) -> tuple[int, ...]:
        """A value that differs once a node, a pod, a nomination or an object has changed."""
        table, nominations, claims = self.table, self.nominations_log, self.claims
        return (
            table.columns.structure,
            table.node_log.position,
            table.pod_log.position,
            table.version_log.position,
            0 if nominations is None else nominations.position,
            claims.log.position,
            claims.under_way_log.position,
            self.listers.changes,
        )

    def trial(self) -> Trial:
        """Return a context manager that changes rows and undoes the changes at its end."""
        return Trial(self.table)
