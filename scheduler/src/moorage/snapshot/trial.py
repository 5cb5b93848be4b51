"""Trials: pods are added to or removed from rows, the rows are judged, the changes are undone.

An undo log over the live arrays. Trials nest, last in first out. Undone rows count as changed, so
caches by row check them again.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.table import NodeTable, PortSet


class Trial:
    """A what-if inside one attempt; use it as a context manager.

    Parameters
    ----------
    table
        The table to change. No node may come or go while the trial is open.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._undo: list[tuple[PodInfo, str, bool]] = []
        self._rows_before: dict[int, tuple[dict[str, PodInfo], PortSet]] = {}
        self._structure = table.columns.structure

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.undo()

    def add_pod(self, pod: PodInfo, row: int) -> None:
        """Count a pod on a row for the length of the trial."""
        self._remember(row)
        name = self._table.names[row]
        self._table.add_pod(pod, name)
        self._undo.append((pod, name, True))

    def remove_pod(self, uid: str) -> None:
        """Take a counted pod away for the length of the trial."""
        name = self._table.node_of_pod(uid)
        pod = self._table.pod_info(uid)
        assert name is not None, f"pod {uid} is on no node"
        assert pod is not None, f"pod {uid} is on no node"
        row = self._table.row_of(name)
        assert row is not None, f"pod {pod.key} is on node {name}, which is not there"
        self._remember(row)
        self._table.remove_pod(uid)
        self._undo.append((pod, name, False))

    def undo(self) -> None:
        """Take back every change, newest first; the trial can be used again."""
        assert self._table.columns.structure == self._structure, "nodes changed during a trial"
        for pod, name, added in reversed(self._undo):
            if added:
                self._table.remove_pod(pod.uid)
            else:
                self._table.add_pod(pod, name)
        for row, (pods, ports) in self._rows_before.items():
            self._table.restore_row(row, pods, ports)
        self._undo.clear()
        self._rows_before.clear()

    def _remember(self, row: int) -> None:
        if row not in self._rows_before:
            pods = dict(self._table.pods_by_row[row])
            self._rows_before[row] = (pods, self._table.ports.at(row))
