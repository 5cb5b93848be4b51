"""One attempt to place one pod: the input of every step of the cycle."""

from __future__ import annotations

from collections.abc import Collection
from enum import Enum
from typing import Final

import msgspec

from moorage.framework.cycle_state import CycleState
from moorage.framework.profile import Profile
from moorage.framework.status import Status
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.view import NodeView


class CycleError(Exception):
    """A plugin broke during an attempt; carries the status the attempt ends with.

    Parameters
    ----------
    status
        Error, or a rejection.
    point
        The extension point at which the plugin broke; "" where it is unknown.
    """

    def __init__(self, status: Status, point: str = "") -> None:
        self.status = status
        self.point = point
        super().__init__(status.message)


class Preemption(Enum):
    """Which PostFilter plugins are asked when no row is feasible."""

    ALLOWED = "allowed"
    """All of them, as in kube-scheduler."""
    ALONE = "alone"
    """Only those that propose evictions: the others act, as if the attempt were no trial."""
    REFUSED = "refused"
    """All but those that propose evictions, because the pod's group would not fit all the same."""


class Scope(msgspec.Struct, frozen=True):
    """The bounds of an attempt that is part of something larger.

    Parameters
    ----------
    within
        The rows that the attempt may choose from, as if no other row existed; None means all.
        Plugins still see the whole cluster before they filter.
    post_filter
        Whether PostFilter runs when no row is feasible.
    preemption
        Which PostFilter plugins run.
    explain
        Whether preemption writes a report.
    """

    within: NodeView | None = None
    post_filter: bool = True
    preemption: Preemption = Preemption.ALLOWED
    explain: bool = False


WHOLE: Final = Scope()
"""An ordinary attempt: every row, PostFilter included."""


class Attempt(msgspec.Struct, frozen=True):
    """The pod, the plugins that are asked about it, and the cluster that they see.

    Parameters
    ----------
    profile
        The plugins.
    snapshot
        The cluster.
    state
        The values that plugins pass to each other in this attempt.
    pod
        The pod.
    scope
        The bounds of the attempt.
    """

    profile: Profile
    snapshot: Snapshot
    state: CycleState
    pod: PodInfo
    scope: Scope = WHOLE

    @property
    def wants_post_filter(self) -> bool:
        """Whether PostFilter is asked when no row is feasible."""
        return self.scope.post_filter and bool(self.profile.post_filters)

    def candidates(self, names: Collection[str] | None) -> NodeView:
        """Return the rows to filter.

        Parameters
        ----------
        names
            The nodes that PreFilter leaves; None for every node.
        """
        within = self.scope.within
        if names is None:
            return self.snapshot.all() if within is None else within
        known = (self.snapshot.row_of(name) for name in names)
        rows = {row for row in known if row is not None}
        if within is not None:
            rows &= {*within.row_numbers().tolist()}
        return self.snapshot.rows(sorted(rows))

    def branch(self, *, metered: bool = True) -> Attempt:
        """Return the same attempt with a copy of the cycle state, for a trial.

        Parameters
        ----------
        metered
            Whether the meter of the attempt records the calls of plugins in the trial.
        """
        state = self.state.copy()
        if not metered:
            state.meter = None
        return Attempt(self.profile, self.snapshot, state, self.pod, self.scope)
