"""The rejection cache: why a search found no node, for the next pod of the same shape.

A group that does not fit has dozens of members for which there is no node. Without this cache, each
member would count every row's reasons and try preemption on every node, with the same result. The
cache forgets every rejection as soon as a row changes.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from moorage.engine.answers import Rejection
from moorage.engine.attempt import Attempt
from moorage.framework.caches import Changes
from moorage.framework.points import PreFilterOutcome
from moorage.framework.preemption import EXPLAIN
from moorage.framework.profile import Profile

# Rejections that a shape keeps; above this, all are forgotten. A guess.
_KEPT_MOST: Final = 64
# Size of a rejection: counts by reason, names of plugins, a message; a guess.
_REJECTION_BYTES: Final = 2048


class RejectionPlugins:
    """Whether the PostFilter plugins of a profile answer pods of one shape alike.

    Parameters
    ----------
    profile
        The profile. A PostFilter plugin that does not declare `rejects_by_shape` is asked again for
        every pod.
    """

    def __init__(self, profile: Profile) -> None:
        self.by_shape = all(
            profile.capabilities[plugin.name].rejects_by_shape for plugin in profile.post_filters
        )


class RejectionCache:
    """The rejections of pods of one shape since a row changed last.

    Parameters
    ----------
    plugins
        The PostFilter plugins of the profile.
    """

    __slots__ = ("_plugins", "_rejections")

    def __init__(self, plugins: RejectionPlugins) -> None:
        self._plugins = plugins
        self._rejections: dict[Hashable, Rejection] = {}

    def follow(self, changes: Changes) -> None:
        """Forget every rejection where a row changed: a rejection depends on all rows."""
        if changes.rows:
            self._rejections.clear()

    def forget(self) -> None:
        """Forget every rejection."""
        self._rejections.clear()

    @property
    def nbytes(self) -> int:
        """Memory of the rejections, bytes."""
        return len(self._rejections) * _REJECTION_BYTES

    def key(self, attempt: Attempt, outcome: PreFilterOutcome) -> Hashable | None:
        """Return the key shared by pods that are rejected alike; None for a pod with no such key.

        Rejections are kept where only the shape decided. That means: no plugin was asked that sees
        more than the sums of a row, and no pod is nominated anywhere.

        Parameters
        ----------
        attempt
            The attempt, whose search found no more than the result kept for the shape.
        outcome
            Outcome of PreFilter.
        """
        snapshot = attempt.snapshot
        state, pod, wanted = attempt.state, attempt.pod, attempt.wants_post_filter
        explained = state.find(EXPLAIN)
        if (
            (wanted and not self._plugins.by_shape)
            or snapshot.nominations
            or pod.pod.status.nominated_node_name
            or explained
            or attempt.profile.filters_by_sums(state.skip_filter) is None
        ):
            return None
        groups = snapshot.groups
        group = groups.key_of(pod.pod)
        return (
            outcome.plugins,
            wanted and attempt.scope.preemption,
            pod.priority,
            pod.pod.spec.preemption_policy,
            group and (group, groups.source.terms_of(group)),
        )

    def find(self, key: Hashable) -> Rejection | None:
        """Return why a pod with this key was rejected, if a pod was since a row changed last."""
        return self._rejections.get(key)

    def keep(self, key: Hashable, rejection: Rejection) -> None:
        """Keep a rejection, unless PostFilter named a node."""
        result = None if rejection.after is None else rejection.after.result
        if result is not None and (result.nominated_node or result.victims):
            return
        if len(self._rejections) >= _KEPT_MOST:
            self.forget()
        self._rejections[key] = rejection
