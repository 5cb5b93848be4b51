"""Pods that came to nodes or left them since the last look, for sums that plugins keep by node."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.table import NodeTable


class PodChange(NamedTuple):
    """The difference of one node's pods: versions that are there no longer, and new ones."""

    node: str
    before: list[PodInfo]
    after: list[PodInfo]

    @property
    def departures(self) -> list[PodInfo]:
        """The pods of which no version is there any more."""
        uids = {pod.uid for pod in self.after}
        return [pod for pod in self.before if pod.uid not in uids]

    @property
    def arrivals(self) -> list[PodInfo]:
        """The pods of which no version was there."""
        uids = {pod.uid for pod in self.before}
        return [pod for pod in self.after if pod.uid not in uids]


class PodChanges:
    """Compares the pods of each node with those of the last look.

    Parameters
    ----------
    table
        The pods on nodes.
    """

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._structure = -1
        self._position = 0
        self._pods: dict[str, dict[str, PodInfo]] = {}

    def read(self) -> list[PodChange]:
        """Return the changes since the last call; from a deleted node every pod departs."""
        table = self._table
        changes: list[PodChange] = []
        rows: Iterable[int] | None = table.pod_log.since(self._position)
        if rows is None or self._structure != table.columns.structure:
            self._structure = table.columns.structure
            rows = range(len(table.names))
            deleted = [node for node in self._pods if table.row_of(node) is None]
            changes += [PodChange(node, [*self._pods.pop(node).values()], []) for node in deleted]
        self._position = table.pod_log.position
        for row in rows:
            node, pods = table.names[row], table.pods_by_row[row]
            known = self._pods.get(node, {})
            if known == pods:  # the same objects, compared by identity
                continue
            self._pods[node] = dict(pods)
            before = [pod for uid, pod in known.items() if pods.get(uid) is not pod]
            after = [pod for uid, pod in pods.items() if known.get(uid) is not pod]
            changes.append(PodChange(node, before, after))
        return changes
