"""The cluster's columns and the events that keep them current, row by row.

Pods may arrive before their node, and outlive it: they are kept hidden under the node's name and
are not counted until the node exists (the "ghost" nodes of kubernetes v1.36
``pkg/scheduler/backend/cache``).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final, cast

from moorage.api.node import Node, Taint
from moorage.api.pod import Pod
from moorage.api.quantity import parse_quantity
from moorage.api.requests import is_scheduling_resource, to_units
from moorage.snapshot.affinity_terms import AffinityTerms
from moorage.snapshot.columns import Columns
from moorage.snapshot.images import Images, image_sizes
from moorage.snapshot.key_log import KeyLog
from moorage.snapshot.labels import LabelColumn, Labels
from moorage.snapshot.node_order import NodeOrder
from moorage.snapshot.pod_columns import PodColumns
from moorage.snapshot.pod_info import PodInfo, info_of
from moorage.snapshot.schema import FIXED, ColumnKey
from moorage.snapshot.sets import SetColumn
from moorage.snapshot.shape import PORTS, RESOURCES, HostPort, Part, PodRequests
from moorage.snapshot.volume_pods import VolumePods

PortSet = frozenset[HostPort]

_Cells = tuple[tuple[memoryview, int], ...]
_Booking = tuple[_Cells, _Cells]
"""The cells that a pod changes when it leaves, and when it comes; each with the change."""

_BOOKINGS_MOST: Final = 4096  # distinct requests whose cells are remembered; a guess: a megabyte


class NodeTable:
    """The table with one row a node, kept current by the cache or by the builder of a snapshot."""

    def __init__(self) -> None:
        self.columns = Columns()
        for key in FIXED:
            self.columns.ensure(key)
        self.taints: SetColumn[tuple[Taint, ...]] = SetColumn(self.columns, "taints", ())
        self.features: SetColumn[frozenset[str]] = SetColumn(self.columns, "features", frozenset())
        self.ports: SetColumn[PortSet] = SetColumn(self.columns, "ports", frozenset())
        self.labels = Labels(self.columns)
        self.images = Images(self.columns)
        self.pods = PodColumns(self.columns)
        self.terms = AffinityTerms(self.label_column)
        self.volume_pods = VolumePods()
        self.order = NodeOrder()
        self.names: list[str] = []
        self.nodes: list[Node] = []
        self.pods_by_row: list[dict[str, PodInfo]] = []
        self.node_log: KeyLog[int] = KeyLog()
        self.pod_log: KeyLog[int] = KeyLog()
        self.version_log: KeyLog[int] = KeyLog()
        """Rows with a pod whose newer version has the same requests: for readers of the objects."""
        self.terminating: dict[str, PodInfo] = {}
        """The pods on rows that have a deletionTimestamp, by uid."""
        self.exact_limit: dict[str, int] = {}
        """By resource, the greatest allocatable ever seen: whether float64 is exact for it."""
        self._image_sizes: list[dict[str, int]] = []
        self._row_by_name: dict[str, int] = {}
        self._hidden: dict[str, dict[str, PodInfo]] = {}
        self._node_of_pod: dict[str, str] = {}
        # Id of a pod's part of requests -> its changes, cell by cell; dropped with the arrays.
        self._bookings: dict[int, _Booking] = {}
        self._booked_in = -1

    # -- nodes ---------------------------------------------------------------------------------

    def has_node(self, name: str) -> bool:
        """Whether a node of this name is in the table."""
        return name in self._row_by_name

    def row_of(self, name: str) -> int | None:
        """Return the row of a node, or None."""
        return self._row_by_name.get(name)

    def rows_of(self, names: Iterable[str]) -> list[int]:
        """Return the rows of nodes, in order; unknown nodes are left out."""
        # Mapped, not looped over: this runs for every node, several times for each pod.
        rows = list(map(self._row_by_name.get, names))
        return [row for row in rows if row is not None] if None in rows else cast(list[int], rows)

    def add_node(self, node: Node) -> None:
        """Add a node, or replace a known node."""
        name = node.metadata.name
        if name in self._row_by_name:
            self.update_node(node)
            return
        row = self.columns.append_row()
        self._row_by_name[name] = row
        self.names.append(name)
        self.nodes.append(node)
        self.pods_by_row.append({})
        self._image_sizes.append({})
        for column in (self.taints, self.features, self.ports):
            column.added()
        self.images.epoch += 1
        self._write_node(row, node)
        for info in self._hidden.pop(name, {}).values():
            self._place(info, row)

    def update_node(self, node: Node) -> None:
        """Replace a node's object; the pods on it stay."""
        row = self._row_by_name.get(node.metadata.name)
        if row is None:
            self.add_node(node)
            return
        lifted = self._lift_terms(row, node)
        self.nodes[row] = node
        self._write_node(row, node)
        for info in lifted:
            self.terms.add(info, row)

    def remove_node(self, name: str) -> None:
        """Remove a node; pods still on the node are kept hidden until they go or the node returns.

        Raises
        ------
        KeyError
            The node is not in the table.
        """
        row = self._row_by_name.pop(name)
        self.order.remove(name)
        staying = self.pods_by_row[row]
        for info in staying.values():
            self.pods.remove(info.uid)
            self.terminating.pop(info.uid, None)
            if info.pod.spec.volumes:
                self.volume_pods.remove(info, name)
            if info.pod.spec.affinity is not None:
                self.terms.remove(info, row)
        if staying:
            self._hidden[name] = dict(staying)
        self.images.replace(row, self._image_sizes[row], {})
        self.images.epoch += 1
        for column in (self.taints, self.features, self.ports):
            column.removed(row)
        self._drop_row(row)

    # -- pods ----------------------------------------------------------------------------------

    def add_pod(self, pod: Pod | PodInfo, node_name: str) -> None:
        """Count a pod on a node; hidden while the node is unknown."""
        info = pod if isinstance(pod, PodInfo) else info_of(pod)
        assert info.uid not in self._node_of_pod, f"pod {info.key} is on a node already"
        self._node_of_pod[info.uid] = node_name
        row = self._row_by_name.get(node_name)
        if row is None:
            self._hidden.setdefault(node_name, {})[info.uid] = info
        else:
            self._place(info, row)

    def remove_pod(self, uid: str) -> None:
        """Stop counting a pod.

        Raises
        ------
        KeyError
            The pod is not in the table.
        """
        node_name = self._node_of_pod.pop(uid)
        row = self._row_by_name.get(node_name)
        if row is not None:
            self._unplace(uid, row)
            return
        hidden = self._hidden[node_name]
        del hidden[uid]
        if not hidden:
            del self._hidden[node_name]

    def update_pod(self, pod: Pod, node_name: str) -> None:
        """Replace a counted pod by a newer version of it.

        Most versions differ in phase and conditions only; they touch no column, so nothing
        cached by row looks at the row again.

        Raises
        ------
        KeyError
            The pod is not in the table.
        """
        info, row = info_of(pod), self._row_by_name.get(node_name)
        uid = info.uid
        if row is not None and self._node_of_pod[uid] == node_name:
            pods = self.pods_by_row[row]
            if info.counts_like(pods[uid]):
                pods[uid] = info
                if uid in self.terminating:
                    self.terminating[uid] = info
                self.version_log.append(row)
                return
        self.remove_pod(uid)
        self.add_pod(info, node_name)

    def node_of_pod(self, uid: str) -> str | None:
        """Return the name of the node on which a pod is counted, or None."""
        return self._node_of_pod.get(uid)

    def pod_info(self, uid: str) -> PodInfo | None:
        """Return a counted pod (hidden ones too), or None."""
        node_name = self._node_of_pod.get(uid)
        if node_name is None:
            return None
        row = self._row_by_name.get(node_name)
        return (self._hidden[node_name] if row is None else self.pods_by_row[row])[uid]

    @property
    def pod_total(self) -> int:
        """Number of pods counted, hidden ones included."""
        return len(self._node_of_pod)

    @property
    def hidden_nodes(self) -> Collection[str]:
        """Names of unknown nodes that pods are assigned to."""
        return self._hidden.keys()

    @property
    def hidden_pods(self) -> Iterable[PodInfo]:
        """Pods assigned to unknown nodes."""
        return (info for pods in self._hidden.values() for info in pods.values())

    def label_column(self, key: str) -> LabelColumn:
        """Return the column of a label key, made on first use."""
        found = self.labels.find(key)
        if found is not None:
            return found
        return self.labels.column(key, [node.metadata.labels for node in self.nodes])

    def image_sizes_by_row(self) -> list[dict[str, int]]:
        """Return the image sizes of every row."""
        return self._image_sizes

    def restore_row(self, row: int, pods: dict[str, PodInfo], ports: PortSet) -> None:
        """Restore the order of pods and the port set of a row as before a trial.

        Sums are exact under add and remove; the order of pods, and ports that two pods shared,
        are not.
        """
        self.pods_by_row[row] = pods
        self.ports.set(row, ports)
        self.pod_log.append(row)

    # -- rows ----------------------------------------------------------------------------------

    def _write_node(self, row: int, node: Node) -> None:
        ensure = self.columns.ensure
        self.order.put_node(node)
        self._write_allocatable(row, node.status.allocatable)
        ensure("unschedulable")[row] = node.spec.unschedulable
        self.taints.set(row, tuple(node.spec.taints))
        self.features.set(row, frozenset(node.status.declared_features))
        self.labels.put_row(row, node.metadata.labels)
        sizes = image_sizes(node)
        self.images.replace(row, self._image_sizes[row], sizes)
        self._image_sizes[row] = sizes
        self.node_log.append(row)

    def _write_allocatable(self, row: int, allocatable: Mapping[str, str | int | float]) -> None:
        ensure = self.columns.ensure
        amounts = {
            name: to_units(name, parse_quantity(quantity))
            for name, quantity in allocatable.items()
            if name == "pods" or is_scheduling_resource(name)
        }
        ensure("allowed_pods")[row] = amounts.pop("pods", 0)
        for name in self.exact_limit:
            amounts.setdefault(name, 0)
        for name, amount in amounts.items():
            ensure(("allocatable", name))[row] = amount
            ensure(("allocatable_float", name))[row] = amount
            self.exact_limit[name] = max(amount, self.exact_limit.get(name, 0))

    def _lift_terms(self, row: int, new: Node) -> list[PodInfo]:
        """Take a row's pods out of the index of terms if the node's labels are to change."""
        if new.metadata.labels == self.nodes[row].metadata.labels:
            return []
        pods = self.pods_by_row[row].values()
        lifted = [info for info in pods if info.pod.spec.affinity is not None]
        for info in lifted:
            self.terms.remove(info, row)
        return lifted

    def _place(self, info: PodInfo, row: int) -> None:
        self.pods_by_row[row][info.uid] = info
        self._book(info, row, adds=True)
        ports = info.part(PORTS).value
        if ports:
            self.ports.set(row, self.ports.at(row) | frozenset(ports))
        metadata, spec = info.pod.metadata, info.pod.spec
        live = not metadata.deletion_timestamp
        if not live:
            self.terminating[info.uid] = info
        self.pods.add(info.uid, row, info.namespace, metadata.labels, live=live)
        if spec.affinity is not None:
            self.terms.add(info, row)
        if spec.volumes:
            self.volume_pods.add(info, self.names[row])

    def _unplace(self, uid: str, row: int) -> None:
        info = self.pods_by_row[row].pop(uid)
        self._book(info, row, adds=False)
        ports = info.part(PORTS).value
        if ports:
            # A set without reference counts, as upstream: if two pods hold the same port and
            # one goes, the port counts as free (scheduling spec, node basics section 3).
            self.ports.set(row, self.ports.at(row) - frozenset(ports))
        self.pods.remove(uid)
        if self.terminating:
            self.terminating.pop(uid, None)
        spec = info.pod.spec
        if spec.volumes:
            self.volume_pods.remove(info, self.names[row])
        if spec.affinity is not None:
            self.terms.remove(info, row)

    def _book(self, info: PodInfo, row: int, *, adds: bool) -> None:
        if self._booked_in != self.columns.structure:  # arrays may have been replaced
            self._bookings.clear()
            self._booked_in = self.columns.structure
        requests = info.part(RESOURCES)
        booking = self._bookings.get(requests.id)
        if booking is None:
            booking = self._booking(requests)
        for cells, amount in booking[adds]:
            total = cells[row] + amount
            try:
                cells[row] = total
            except ValueError:
                cells[row] = (total + 2**63) % 2**64 - 2**63  # wraps, as int64 does in Go
        self.pod_log.append(row)

    def _booking(self, requests: Part[PodRequests]) -> _Booking:
        """Return which cells of its row a pod changes by leaving and by coming, and by how much.

        Memory views, because NumPy takes three times as long to change a single cell.
        """
        cpu, memory = requests.value.nonzero
        changes: dict[ColumnKey, int] = {
            ("requested", name): amount for name, amount in requests.value.balanced.items()
        }
        changes.update({"nonzero_cpu": cpu, "nonzero_memory": memory, "pod_count": 1})
        ensure = self.columns.ensure
        comes = tuple((ensure(key).data, amount) for key, amount in changes.items() if amount)
        booking = tuple((cells, -amount) for cells, amount in comes), comes
        if len(self._bookings) >= _BOOKINGS_MOST:
            self._bookings.clear()
        self._bookings[requests.id] = booking
        return booking

    def _drop_row(self, row: int) -> None:
        last = self.columns.remove_row(row)
        for by_row in self._by_row():
            by_row[row] = by_row[last]
            by_row.pop()
        if row != last:
            self._row_by_name[self.names[row]] = row
            for uid in self.pods_by_row[row]:
                self.pods.move(uid, row)

    def _by_row(self) -> tuple[list[Any], ...]:
        return self.names, self.nodes, self.pods_by_row, self._image_sizes
