"""Topology domains of a group: the placements of one domain each, and the events that change them.

The nodes with one value of a label are a domain. TopologyPlacementGenerator uses this module for
the groups of Kubernetes, Coscheduling for its own groups.

Rules mirrored: kubernetes v1.36 ``pkg/scheduler/framework/plugins/topologyaware``. Preferred
domains and the hints are moorage's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from moorage.api.changes import Action, ClusterEvent, Resource
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.framework.group import Placement
from moorage.framework.points import MAX_NODE_SCORE, EventRegistration
from moorage.framework.status import SUCCESS, Status, error
from moorage.snapshot.labels import ABSENT, LabelColumn
from moorage.snapshot.pod_groups import GroupKey, GroupTerms
from moorage.snapshot.snapshot import Snapshot

ANYWHERE: Final = (Placement(),)


class TopologyDomains:
    """The domains of groups from some sources.

    Parameters
    ----------
    snapshot
        The nodes and the members of each group.
    serves
        Whether a group is from one of these sources.
    """

    def __init__(self, snapshot: Snapshot, serves: Callable[[GroupKey], bool]) -> None:
        self._snapshot = snapshot
        self._serves = serves

    # -- placements ----------------------------------------------------------------------------

    def placements(
        self, key: GroupKey, terms: GroupTerms | None
    ) -> tuple[Sequence[Placement], Status]:
        """Return one placement for each domain, ordered by value; preferred domains first.

        A group without a constraint gets one placement with all nodes. If members run already, only
        their domain is returned. Upstream leaves the order unspecified.
        """
        if (
            terms is None
            or not self._serves(key)
            or not (terms.topology_key or terms.preferred_topology_key)
        ):
            return ANYWHERE, SUCCESS
        domains_found: Sequence[Placement] = ANYWHERE
        if terms.topology_key:
            column = self._snapshot.label_column(terms.topology_key)
            required, problem = self._required(key, column)
            if problem:
                return (), error(problem)
            domains_found = self._domains(column, None if required is None else {required})
        if terms.preferred_topology_key:
            column = self._snapshot.label_column(terms.preferred_topology_key)
            domains = self._domains(column, self._taken(key, column) or None)
            domains_found = (*self._preferred(domains_found, domains), *domains_found)
        return domains_found, SUCCESS

    def _domains(self, column: LabelColumn, only: set[str] | None) -> Sequence[Placement]:
        """Return the domains of a label; None means the domains of all values."""
        placements = [
            Placement(value, self._snapshot.rows(rows))
            for value, rows in column.rows_by_value(self._snapshot.all().row_numbers())
            if only is None or value in only
        ]
        return sorted(placements, key=lambda each: each.name.encode())

    def _preferred(
        self, bounds: Sequence[Placement], domains: Sequence[Placement]
    ) -> list[Placement]:
        """Return the preferred domains; of each required domain the parts that are in it."""
        placements: list[Placement] = []
        # Rows by domain: the parts of all bounds are found in one pass over the rows.
        domain_n = np.full(self._snapshot.num_nodes, -1, np.int64)
        for number, domain in enumerate(domains):
            domain_n[_rows(domain)] = number
        for bound in bounds:
            if bound.within is None:
                placements += [
                    Placement(each.name, each.within, preferred=True) for each in domains
                ]
                continue
            rows = _rows(bound)
            rows = rows[domain_n[rows] >= 0]
            rows = rows[np.argsort(domain_n[rows], kind="stable")]
            numbers, starts = np.unique(domain_n[rows], return_index=True)
            for number, part in zip(numbers.tolist(), np.split(rows, starts)[1:], strict=True):
                name = f"{bound.name}/{domains[number].name}"  # no label value has a slash
                placements.append(Placement(name, self._snapshot.rows(part), preferred=True))
        return placements

    # -- members that have a node --------------------------------------------------------------

    def _required(self, key: GroupKey, column: LabelColumn) -> tuple[str | None, str]:
        """Return the domain of the members that have a node (None for none), and a fault or ""."""
        required: str | None = None
        for name, domain in self._places(key, column):
            if domain is None:
                return None, (
                    "cannot determine domain for already scheduled pods: no topology domain found "
                    f"for pod {name}"
                )
            if required is not None and domain != required:
                return None, (
                    "cannot determine domain for already scheduled pods: more than 1 domain found "
                    f"for pod group: {required}, {domain}"
                )
            required = domain
        return required, ""

    def _taken(self, key: GroupKey, column: LabelColumn) -> set[str]:
        """Return the domains that members with a node are in."""
        return {domain for _, domain in self._places(key, column) if domain is not None}

    def _places(self, key: GroupKey, column: LabelColumn) -> list[tuple[str, str | None]]:
        """Return (pod, domain) of the members that have a node, by name; None for no domain."""
        members, places = self._snapshot.groups.members(key), list[tuple[str, str | None]]()
        for uid in sorted(members.placed_uids(), key=lambda uid: members.pods[uid].name):
            node_name = self._snapshot.table.node_of_pod(uid)
            row = None if node_name is None else self._snapshot.row_of(node_name)
            value = ABSENT if row is None else int(column.ids[row])
            domain = None if value == ABSENT else column.values[value]
            places.append((members.pods[uid].full_name, domain))
        return places

    # -- events --------------------------------------------------------------------------------

    def registrations(self) -> Sequence[EventRegistration]:
        """Register nodes that come to a domain, and members that leave one."""
        node = ClusterEvent(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL)
        pod = ClusterEvent(Resource.POD, Action.DELETE)
        return (
            EventRegistration(node, self._node_hint, self._kept_out),
            EventRegistration(pod, self._member_hint, self._kept_by),
        )

    def _node_hint(self, waiting: Pod, old: object | None, new: object | None) -> bool:
        """Queue if a node came to a domain of the pod's group."""
        key = self._snapshot.groups.key_of(waiting)
        return key is not None and self._joins(key, old, new)

    def _kept_out(self, old: object | None, new: object | None) -> Sequence[Pod]:
        """Return the pods for which `_node_hint` queues."""
        return [
            pod
            for key, members in self._snapshot.groups.all_groups().items()
            if members.waiting and self._joins(key, old, new)
            for pod in members.waiting_pods()
        ]

    def _joins(self, key: GroupKey, old: object | None, new: object | None) -> bool:
        terms = self._snapshot.groups.source.terms_of(key) if self._serves(key) else None
        if terms is None or not terms.confined:
            return False
        return any(
            (after := _value(new, label)) is not None and after != _value(old, label)
            for label in terms.topology_keys()
        )

    def _member_hint(self, waiting: Pod, old: object | None, new: object | None) -> bool:
        """Queue for a member that is gone: the others may go to another domain."""
        return waiting.uid in {pod.uid for pod in self._kept_by(old, new)}

    def _kept_by(self, old: object | None, new: object | None) -> Sequence[Pod]:
        """Return the pods for which `_member_hint` queues: the members of the gone pod's group."""
        del new
        key = self._snapshot.groups.key_of(old) if isinstance(old, Pod) else None
        terms = (
            None
            if key is None or not self._serves(key)
            else (self._snapshot.groups.source.terms_of(key))
        )
        if key is None or terms is None or not terms.confined:
            return ()
        return self._snapshot.groups.members(key).waiting_pods()


def percent_of_most(placed: int, filled: Sequence[int]) -> NDArray[np.int64]:
    """Return each number of placed members in percent of the greatest number, rounded down.

    Parameters
    ----------
    placed
        Members that have a node already.
    filled
        Members with a place, by placement.

    Returns
    -------
    numpy.ndarray
        int64, (placements,); all 0 if no placement has a member.
    """
    counts = np.array([placed + each for each in filled], np.int64)
    return counts * MAX_NODE_SCORE // max(1, int(counts.max(initial=0)))


def _rows(placement: Placement) -> NDArray[np.int64]:
    assert placement.within is not None, f"placement {placement.name} has every node"
    return placement.within.row_numbers()


def _value(node: object | None, key: str) -> str | None:
    return node.metadata.labels.get(key) if isinstance(node, Node) else None
