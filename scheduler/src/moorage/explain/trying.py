"""Tries changed pods: PreFilter and Filter about every node, next to nominated pods.

The number of tries is bounded, because a try costs a pass over all nodes.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from moorage.api.patch_operations import Operation
from moorage.api.pod import Pod
from moorage.engine.answers import Answers
from moorage.engine.attempt import Attempt, CycleError
from moorage.engine.filters.filter_results import FilterResults
from moorage.engine.inquiry import Inquiry
from moorage.engine.search import Search
from moorage.explain.causes import Causes
from moorage.explain.emptied import Emptied
from moorage.explain.groups import Together
from moorage.explain.patches import patched
from moorage.framework.cycle_state import CycleState
from moorage.framework.subjects import Subject
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.view import NodeView

Rows = NDArray[np.int64]

_NOWHERE = np.empty(0, np.int64)


class Trying:
    """The findings about a pod, and trials of changed pods.

    Parameters
    ----------
    inquiry, emptied, causes
        The answers about the pod as it is.
    tries
        How many changed pods are tried against every node, at most.
    group
        The pod's group, which has to be placed as well; None for a pod on its own.
    """

    def __init__(
        self,
        inquiry: Inquiry,
        emptied: Emptied,
        causes: Causes,
        *,
        tries: int,
        group: Together | None = None,
    ) -> None:
        self.inquiry = inquiry
        self.emptied = emptied
        self.causes = causes
        self.tries_left = tries
        self.left_out = 0
        """The number of changed pods that were not tried, because no tries were left."""
        self.group = group

    @property
    def pod(self) -> Pod:
        """The pod as it is."""
        return self.inquiry.attempt.pod.pod

    def search(self, pod: Pod, view: NodeView | None = None) -> Search | None:
        """Ask PreFilter and Filter about a pod; None where a plugin broke or PreFilter rejects.

        Parameters
        ----------
        pod
            The pod.
        view
            The rows; None for every row that may take it, which counts as a try.
        """
        at = self.inquiry.attempt
        if view is None:
            if self.tries_left <= 0:
                self.left_out += 1
                return None
            self.tries_left -= 1
            view = self._open_view(pod)
        attempt = Attempt(at.profile, at.snapshot, CycleState(), PodInfo(pod))
        answers = Answers(attempt)
        try:
            outcome = answers.pre_filter()
            if not outcome.status.ok:
                return None
            if outcome.node_names is not None:
                named = sorted(at.snapshot.table.rows_of(sorted(outcome.node_names)))
                view = at.snapshot.rows(np.intersect1d(view.row_numbers(), named))
            filtered = answers.filter_view(view) if len(view) else FilterResults(0)
        except CycleError:
            return None
        return Search(answers, outcome, view, filtered)

    def rows_of(self, pod: Pod, view: NodeView | None = None) -> Rows:
        """Return int64: the rows that take a pod, ascending."""
        found = self.search(pod, view)
        if found is None:
            return _NOWHERE
        return found.view.row_numbers()[found.filtered.passed]

    def with_patch(self, operations: Sequence[Operation]) -> Rows:
        """Return int64: the rows that take the pod with a patch."""
        return self.rows_of(patched(self.pod, operations))

    def _open_view(self, pod: Pod) -> NodeView:
        """Return the rows that may take a pod.

        Where nothing has changed that devices are chosen by, rows without devices for the pod stay
        without, and are not asked about again: each would cost a search for devices.
        """
        without_n = self.inquiry.rejects_about(Subject.DEVICES)
        if not without_n.any() or _devices_wanted(pod) != _devices_wanted(self.pod):
            return self.inquiry.snapshot.all()
        return self.inquiry.snapshot.rows(np.flatnonzero(~without_n))

    def first_name(self, rows: Rows) -> str:
        """Return the name of the first of some rows, in the order of names."""
        names = self.inquiry.snapshot.names
        found: list[int] = rows.tolist()
        return min(names[row] for row in found)


def _devices_wanted(pod: Pod) -> object:
    """Return what devices are chosen by: claims, and requests of extended resources."""
    spec = pod.spec
    asking = (*spec.containers, *spec.init_containers)
    return spec.resource_claims, spec.resources, [each.resources for each in asking]
