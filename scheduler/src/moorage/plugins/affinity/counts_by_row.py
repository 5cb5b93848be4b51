"""The counts of InterPodAffinity for rows that are each tried without some of their pods.

As `counts.after`, for many rows at once: a pod adds to the counts of its row's domains by its kind.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from moorage.framework.status import FilterAnswer
from moorage.plugins.affinity.counts import Counts, Gone, namespace_labels
from moorage.plugins.affinity.domain_counts import BoolArray
from moorage.plugins.affinity.incoming import means
from moorage.snapshot.importance import RankedPods
from moorage.snapshot.pod_affinity import POD_AFFINITY
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView

IntArray = NDArray[np.int64]

_Table = Literal["existing", "near", "away"]
_TABLES: Final[tuple[_Table, ...]] = ("existing", "near", "away")


class CountsByRow:
    """`RowCounts` of InterPodAffinity: a count for each topology key of each table.

    Parameters
    ----------
    snapshot
        The cluster.
    counts, pod
        The counts, and the pod about which they are.
    view
        The rows.
    ranked
        The pods of the rows, with kinds.
    judge
        Returns the plugin's answer about the rows without pods that left them.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        counts: Counts,
        pod: PodInfo,
        view: NodeView,
        *,
        ranked: RankedPods,
        judge: Callable[[Gone], FilterAnswer | None],
    ) -> None:
        self._judge, self.kinds, kinds = judge, ranked.kind, ranked.of_kind
        sets = [each for each in (counts.placed, counts.beside) if each is not None]
        self._keys: list[tuple[_Table, str]] = [
            (table, key)
            for table in _TABLES
            for key in dict.fromkeys(key for each in sets for key in getattr(each, table))
        ]
        self.by_kind: IntArray = np.zeros((len(self._keys), len(kinds) + 1), np.int64)
        self.counting_rows: BoolArray = np.zeros((len(self._keys), len(view)), np.bool_)
        for index, (_, key) in enumerate(self._keys):
            self.counting_rows[index] = view.take_rows(snapshot.label_column(key).ids) >= 0
        self._fill(snapshot, counts, pod, kinds)

    @property
    def alone(self) -> None:
        """None: every row can be judged so."""

    def judge_without(self, gone: IntArray) -> FilterAnswer | None:
        """Return the answer about the rows; None where all rows pass."""
        tables: dict[_Table, dict[str, IntArray]] = {table: {} for table in _TABLES}
        for index, (table, key) in enumerate(self._keys):
            tables[table][key] = gone[index]
        return self._judge(Gone(**tables))

    def _fill(
        self, snapshot: Snapshot, counts: Counts, pod: PodInfo, kinds: Sequence[PodInfo]
    ) -> None:
        incoming, mine = counts.placed.incoming, pod.pod.metadata.labels
        of_namespace = namespace_labels(snapshot, pod.namespace)
        index_of = {each: index for index, each in enumerate(self._keys)}
        for kind, other in enumerate(kinds):
            namespace, labels = other.namespace, other.pod.metadata.labels
            adds: list[tuple[_Table, str]] = [
                ("existing", term.topology_key)
                for term in other.part(POD_AFFINITY).value.required_anti
                if term.selects_pod(pod.namespace, mine, of_namespace)
            ]
            if incoming.is_near(namespace, labels):
                adds += [("near", key) for key in incoming.keys]
            adds += [
                ("away", term.topology_key)
                for term in incoming.required_anti
                if means(term, namespace, labels)
            ]
            for each in adds:
                # A table without this key has counts of no row with the label.
                if each in index_of:
                    self.by_kind[index_of[each], kind] += 1
