"""The rejection cache: why a search found no node, for the next pod of the same shape.

A group that does not fit has dozens of members for which there is no node. Without this cache, each
member would count every row's reasons and try preemption on every node, with the same result. The
cache forgets everything as soon as a row changes.
"""

from __future__ import annotations

from collections.abc import Hashable

from moorage.engine.answers import Rejection
from moorage.engine.attempt import Attempt
from moorage.framework.preemption import EXPLAIN
from moorage.framework.profile import Profile
from moorage.framework.runner import PreFilterOutcome
from moorage.snapshot.snapshot import Snapshot


class RejectionCache:
    """The rejections since a row changed last.

    Parameters
    ----------
    profile
        The profile. A PostFilter plugin that does not declare `rejects_by_shape` is asked again for
        every pod.
    snapshot
        The cluster.
    """

    def __init__(self, profile: Profile, snapshot: Snapshot) -> None:
        self._profile = profile
        self._snapshot = snapshot
        self._by_shape = all(
            profile.capabilities[plugin.name].rejects_by_shape for plugin in profile.post_filters
        )
        self._kept: dict[Hashable, Rejection] = {}
        self._position = (-1, -1)

    def key(self, attempt: Attempt, outcome: PreFilterOutcome, shape: Hashable) -> Hashable | None:
        """Return the key shared by pods that are rejected alike; None for a pod with no such key.

        Rejections are kept where only the shape decided. That means: no plugin was asked that sees
        more than the sums of a row, and no pod is nominated anywhere.

        Parameters
        ----------
        attempt
            The attempt, whose search found no more than the result kept for the shape.
        outcome
            Outcome of PreFilter.
        shape
            The shape; compared by identity.
        """
        state, pod, wanted = attempt.state, attempt.pod, attempt.wants_post_filter
        explained = state.find(EXPLAIN)
        if (
            (wanted and not self._by_shape)
            or self._snapshot.nominations
            or pod.pod.status.nominated_node_name
            or explained
            or self._profile.filters_by_sums(state.skip_filter) is None
        ):
            return None
        groups = self._snapshot.groups
        group = groups.key_of(pod.pod)
        return (
            shape,
            outcome.plugins,
            wanted,
            pod.priority,
            pod.pod.spec.preemption_policy,
            group and (group, groups.source.terms_of(group)),
        )

    def find(self, key: Hashable) -> Rejection | None:
        """Return why a pod with this key was rejected, if no row has changed since."""
        table = self._snapshot.table
        position = (table.node_log.position, table.pod_log.position)
        if position != self._position:
            self.forget()
            self._position = position
            return None
        return self._kept.get(key)

    def keep(self, key: Hashable, rejection: Rejection) -> None:
        """Keep a rejection, unless PostFilter named a node."""
        result = None if rejection.after is None else rejection.after.result
        if result is None or not (result.nominated_node or result.victims):
            self._kept[key] = rejection

    def forget(self) -> None:
        """Forget every rejection."""
        self._kept.clear()
