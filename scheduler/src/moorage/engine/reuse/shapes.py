"""The shape cache: the cached answers for each shape of pods.

A shape is the parts of a pod that reusable plugins read. The answers of these plugins for every row
are kept for the next pod of the shape. They are brought up to date from the rows that changed
since. Placing one replica after another thus costs one changed row, not a pass over the cluster.

A shape is dropped when rows were added, removed or moved, or when a plugin's epoch changed. When
the shapes exceed their byte budget, the least recently used shape is dropped first.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import Any, Final

from moorage.engine.attempt import Attempt
from moorage.engine.reuse.best_rows import BestRows
from moorage.engine.reuse.filters import FilterCache, FilterPlugins
from moorage.engine.reuse.nominated import NominatedCache
from moorage.engine.reuse.pre_filters import PreFilterCache, PreFilterPlugins
from moorage.engine.reuse.rejections import RejectionCache, RejectionPlugins
from moorage.engine.reuse.scores import ScoreCache, ScorePlugins
from moorage.framework.caches import NO_CHANGES, Cache, RowFollower
from moorage.framework.cycle_state import CycleState
from moorage.framework.profile import Profile
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import NODE_NAME, Part
from moorage.snapshot.snapshot import Snapshot

BUDGET_BYTES: Final = 256 * 1024 * 1024
"""Default budget: about 500 shapes at 5000 nodes; a guess."""

# Size of a shape without arrays: its parts and the values that plugins compiled; a guess.
_SHAPE_BYTES: Final = 8 * 1024

# When one row is checked, it is looked up among the rows that may have changed since a shape was
# brought up to date, up to this number; a guess.
_BEHIND_MOST: Final = 128

Parts = tuple[Part[Any], ...]
Key = tuple[int, ...]


class ShapePlugins:
    """The plugins of a profile as the caches of a shape ask them."""

    def __init__(self, profile: Profile) -> None:
        self.pre_filters = PreFilterPlugins(profile)
        self.filters = FilterPlugins(profile)
        self.scores = ScorePlugins(profile)
        self.rejections = RejectionPlugins(profile)


class Shape:
    """The cached answers for one shape.

    Parameters
    ----------
    parts
        The parts of its pods. They are kept alive, so that the parts of the next replica have the
        same ids.
    attempt
        A pod of the shape, with a cycle state that only the reusable plugins write.
    plugins
        The plugins that are asked.
    epochs
        The epochs of the plugins that have one.

    Attributes
    ----------
    state
        The state of the attempt.
    pre_filters, filters, scores, best, nominated, rejections
        The caches.
    caches
        All of them.
    """

    def __init__(self, parts: Parts, attempt: Attempt, plugins: ShapePlugins, epochs: Key) -> None:
        self._table = attempt.snapshot.table
        self._follower = RowFollower(self._table.node_log, self._table.pod_log)
        self.parts = parts
        self.key = _key(parts)
        self.structure = self._table.columns.structure
        self.epochs = epochs
        self.state = attempt.state
        self.pre_filters = PreFilterCache(plugins.pre_filters, self.state)
        self.filters = FilterCache(plugins.filters, attempt)
        self.scores = ScoreCache(plugins.scores, attempt)
        self.best = BestRows(self.filters, self.scores)
        self.nominated = NominatedCache()
        self.rejections = RejectionCache(plugins.rejections)
        self.caches: tuple[Cache, ...] = (
            self.pre_filters,
            self.filters,
            self.scores,
            self.best,
            self.nominated,
            self.rejections,
        )
        # Of PreFilter no answer depends on a row.
        self._by_rows = self.caches[1:]

    @property
    def nbytes(self) -> int:
        """Memory of the shape and its caches, bytes; everything except the arrays is a guess."""
        return _SHAPE_BYTES + sum([cache.nbytes for cache in self.caches])

    def follow(self) -> bool:
        """Bring the caches up to date with every changed row; return whether they forgot all."""
        changes = self._follower.changes()
        if changes is NO_CHANGES:
            return False
        self.state.meter = None  # keeping answers up to date belongs to no extension point
        if changes is not None and (changes.are_few or not changes.are_many(self._table.columns.n)):
            for cache in self._by_rows:
                cache.follow(changes)
            return False
        self.forget()
        return True

    def forget(self) -> None:
        """Forget every answer."""
        for cache in self.caches:
            cache.forget()

    def passes(self, attempt: Attempt, row: int) -> bool:
        """Whether one row passes, from the cache or judged alone; False is always a safe answer.

        The caches need not be up to date. A pod that gets its nominated node needs no other row.
        The next attempt over all rows judges the other rows once.

        Parameters
        ----------
        attempt
            A pod of the shape, after PreFilter.
        row
            The row.
        """
        log, (nodes, since) = self._table.pod_log, self._follower.positions
        passed = self.filters.passes(attempt.state, row)
        if passed is None or nodes != self._table.node_log.position:
            return False
        if log.position - since > _BEHIND_MOST:
            return False
        if not log.may_have_changed(row, since):
            return passed
        return self.filters.passes_now(row)


def _key(parts: Parts) -> Key:
    return tuple([part.id for part in parts])


class ShapeCache:
    """Shapes by key for one profile.

    Parameters
    ----------
    profile
        The plugins that are asked.
    snapshot
        The cluster.
    budget_bytes
        Maximum memory of all shapes together.

    Attributes
    ----------
    hits, misses
        How often a shape was known, and how often all rows had to be judged.
    """

    def __init__(
        self, profile: Profile, snapshot: Snapshot, *, budget_bytes: int = BUDGET_BYTES
    ) -> None:
        self._profile = profile
        self._plugins = ShapePlugins(profile)
        self._snapshot = snapshot
        self._budget = budget_bytes
        self._shapes: OrderedDict[Key, Shape] = OrderedDict()
        self._sizes: dict[Key, int] = {}
        self._total = 0
        self._kinds = profile.shape_kinds
        # Of the parts besides the spec's own, the name of a node is nearly always empty.
        self._known_by_spec = all(kind.beside_volumes or kind is NODE_NAME for kind in self._kinds)
        self._epochs = [
            each.epoch
            for name, each in profile.capabilities.items()
            if name not in profile.asked_afresh and each.epoch is not None
        ]
        self.hits = 0
        self.misses = 0

    def __len__(self) -> int:
        return len(self._shapes)

    @property
    def nbytes(self) -> int:
        """Memory of all shapes, bytes."""
        return self._total

    def find(self, pod: PodInfo) -> Shape:
        """Return the shape of a pod, which may have to be brought up to date."""
        parts, key = self._shape_of(pod)
        epochs = tuple([epoch(self._snapshot) for epoch in self._epochs])
        shape = self._shapes.get(key)
        structure = self._snapshot.table.columns.structure
        if shape is not None and shape.structure == structure and shape.epochs == epochs:
            self.hits += 1
            self._shapes.move_to_end(key)
            return shape
        self.misses += 1
        attempt = Attempt(self._profile, self._snapshot, CycleState(), pod)
        made = self._shapes[key] = Shape(parts, attempt, self._plugins, epochs)
        self._shapes.move_to_end(key)
        self.keep_budget(made)  # also shapes that PreFilter stops or restricts must not accumulate
        return made

    def missed(self, shape: Shape) -> None:
        """Note that a shape forgot all its answers: all rows have to be judged."""
        self.misses += 1
        self.keep_budget(shape)

    def keep_budget(self, shape: Shape) -> None:
        """Count a shape's memory, and drop the least recently used shapes over budget."""
        size = shape.nbytes
        self._total += size - self._sizes.get(shape.key, 0)
        self._sizes[shape.key] = size
        while self._total > self._budget and len(self._shapes) > 1:
            oldest, _ = self._shapes.popitem(last=False)
            self._total -= self._sizes.pop(oldest, 0)

    def _shape_of(self, pod: PodInfo) -> tuple[Parts, Key]:
        if not self._known_by_spec or pod.pod.spec.node_name:
            parts = tuple([pod.part(kind) for kind in self._kinds])
            return parts, _key(parts)
        memo = pod.beside_volumes_memo
        known: tuple[Parts, Key] | None = memo.get(self)
        if known is None:
            parts = tuple([pod.part(kind) for kind in self._kinds])
            known = memo[self] = parts, _key(parts)
        return known
