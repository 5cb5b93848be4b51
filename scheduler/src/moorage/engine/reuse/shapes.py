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
from moorage.engine.filters.filter_results import ROW_BYTES
from moorage.engine.reuse.best_rows import BestRows
from moorage.engine.reuse.filters import FilterCache, FilterPlugins
from moorage.engine.reuse.nominated import NominatedCache
from moorage.engine.reuse.pre_filters import PreFilterCache, PreFilterPlugins
from moorage.engine.reuse.rejections import RejectionCache, RejectionPlugins
from moorage.engine.reuse.scores import ScoreCache, ScorePlugins
from moorage.engine.reuse.shared import SharedAnswers, SharedPlugins
from moorage.framework.caches import NO_CHANGES, Cache, Changes, RowFollower
from moorage.framework.cycle_state import CycleState
from moorage.framework.profile import Profile
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.shape import NODE_NAME, Part
from moorage.snapshot.snapshot import Snapshot

BUDGET_BYTES: Final = 64 * 1024 * 1024
"""Default budget: about 250 shapes that keep their rows at 5000 nodes; a guess."""

# Size of a shape without arrays: its parts and the values that plugins compiled; a guess.
_SHAPE_BYTES: Final = 8 * 1024

# Bytes of a row in the arrays of a shape: two filter results, whether it passed, and its two sums.
# Each plugin's score comes to it.
_ROW_BYTES: Final = 2 * ROW_BYTES + 3 * 8

PASS_ROWS: Final = 8192
"""A pass over so many rows costs what following a few dozen rows costs; a guess. Tests make it
smaller."""

# When one row is checked, it is looked up among the rows that may have changed since a shape was
# brought up to date, up to this number; a guess.
_BEHIND_MOST: Final = 128

Parts = tuple[Part[Any], ...]
Key = tuple[int, ...]


class ShapePlugins:
    """The plugins of a profile as the caches of a shape ask them."""

    def __init__(self, profile: Profile) -> None:
        self.shared = SharedPlugins(profile)
        self.pre_filters = PreFilterPlugins(profile, self.shared.names)
        self.filters = FilterPlugins(profile)
        self.scores = ScorePlugins(profile)
        self.rejections = RejectionPlugins(profile)
        forms = [profile.filter_forms[index] for index in self.filters.by_pods]
        self.slow_filters = frozenset(
            [each.name for each in forms if each.row_by_row or not each.by_sums]
        )
        self.slow_scores = frozenset(
            [each.name for each in self.scores.by_pods if each.row_by_row or not each.by_sums]
        )
        """The plugins for which a pass over all rows may take long: a call for each row, or a look
        at its pods."""


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
    shared
        The answers that the shape shares with others; also an attribute.

    Attributes
    ----------
    state
        The state of the attempt.
    pre_filters, filters, scores, best, nominated, rejections
        The caches.
    caches
        All of them.
    """

    def __init__(
        self, parts: Parts, attempt: Attempt, plugins: ShapePlugins, shared: SharedAnswers
    ) -> None:
        self._table = attempt.snapshot.table
        self._follower = RowFollower(self._table.node_log, self._table.pod_log)
        self._plugins = plugins
        self._had_pod = self._forgot_for_pod = False
        self._is_followed = False
        """Whether two pods of the shape came with few changes between them."""
        self.parts = parts
        self.key = _key(parts)
        self.shared = shared
        self.state = attempt.state
        self.pre_filters = PreFilterCache(plugins.pre_filters, shared.pre_filters, self.state)
        self.filters = FilterCache(plugins.filters, shared, attempt)
        self.scores = ScoreCache(plugins.scores, shared, attempt)
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
        scored = len(plugins.scores.by_pods)
        self._full_bytes = _SHAPE_BYTES + self._table.columns.n * (_ROW_BYTES + 8 * scored)
        # Of PreFilter no answer depends on a row.
        self._by_rows = self.caches[1:]

    @property
    def nbytes(self) -> int:
        """Memory of the shape and its caches, bytes; everything except the arrays is a guess.

        Filter results and scores count in full where the shape keeps its rows.
        """
        size = self._full_bytes if self.keeps_rows else _SHAPE_BYTES
        return size + self.nominated.nbytes + self.rejections.nbytes

    def follow(self) -> bool:
        """Bring the caches up to date with every changed row; return whether they forgot all."""
        had_pod, self._had_pod = self._had_pod, True
        changes = self._follower.changes()
        if changes is NO_CHANGES:
            self._is_followed = self._is_followed or had_pod
            return False
        self.state.meter = None  # keeping answers up to date belongs to no extension point
        if changes is not None and (changes.are_few or not self._are_many(changes)):
            self._is_followed = self._is_followed or had_pod
            for cache in self._by_rows:
                cache.follow(changes)
            return False
        self._forgot_for_pod, self._is_followed = had_pod, False
        for cache in self._by_rows:
            cache.forget()
        return True

    def _are_many(self, changes: Changes) -> bool:
        """Whether a pass over all rows costs less than following so many changed rows."""
        n = self._table.columns.n
        return changes.are_many(n) or not (self._is_slow or len(changes.rows) * 4 + PASS_ROWS < n)

    @property
    def _is_slow(self) -> bool:
        """Whether a pass over all rows may take long; known after PreFilter."""
        slow = self._plugins
        return bool(slow.slow_scores) or not slow.slow_filters <= self.state.skip_filter

    @property
    def keeps_rows(self) -> bool:
        """Whether the answers for every row are kept when a pod of another shape is decided.

        They are kept where another pod of the shape is likely to save a pass over all rows.
        """
        return self._is_followed or self._is_slow

    @property
    def comes_again(self) -> bool:
        """Whether all answers were forgotten for a pod that was not the first, and are cheap."""
        return self._forgot_for_pod and not self._is_slow

    def forget_rows(self) -> None:
        """Forget the answers for every row; what does not take arrays stays."""
        for cache in (self.filters, self.scores, self.best, self.nominated):
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
        self._shared: dict[Key, SharedAnswers] = {}
        self._sizes: dict[Key, int] = {}
        self._total = 0
        self._last: Shape | None = None
        """The shape that was asked for last."""
        self._structure = -1
        self._epochs_before: Key = ()
        self._kinds = profile.shape_kinds
        self._shared_at = [self._kinds.index(kind) for kind in self._plugins.shared.kinds]
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
        structure = self._snapshot.table.columns.structure
        if structure != self._structure or epochs != self._epochs_before:
            self._structure, self._epochs_before = structure, epochs
            self._forget_all()
        shape, last = self._shapes.get(key), self._last
        if last is not None and last is not shape:
            self._leave(last)
        if shape is not None:
            self.hits += 1
            self._shapes.move_to_end(key)
            self._last = shape
            return shape
        self.misses += 1
        attempt = Attempt(self._profile, self._snapshot, CycleState(), pod)
        shared = self._shared_by(parts, pod)
        shared.shapes += 1
        made = self._last = self._shapes[key] = Shape(parts, attempt, self._plugins, shared)
        self.keep_budget(made)
        return made

    def _shared_by(self, parts: Parts, pod: PodInfo) -> SharedAnswers:
        """Return the answers that a pod's shape shares with others."""
        key = tuple([parts[index].id for index in self._shared_at])
        shared = self._shared.get(key)
        if shared is None:
            attempt = Attempt(self._profile, self._snapshot, CycleState(), pod)
            shared = self._shared[key] = SharedAnswers(self._plugins.shared, attempt, key)
        return shared

    def _forget_all(self) -> None:
        """Forget every shape: rows were added, removed or moved, or an epoch changed."""
        self._last = None
        self._shapes.clear()
        self._shared.clear()
        self._sizes.clear()
        self._total = 0

    def _leave(self, shape: Shape) -> None:
        """Let a shape forget its rows where they are not kept, as another shape is asked for."""
        if not shape.keeps_rows:
            shape.forget_rows()
        self.keep_budget(shape)

    def missed(self) -> None:
        """Note that a shape forgot all its answers: all rows have to be judged."""
        self.misses += 1

    def keep_budget(self, shape: Shape) -> None:
        """Count a shape's memory, and drop the least recently used shapes over budget."""
        size, before = shape.nbytes, self._sizes.get(shape.key, 0)
        if size == before or self._shapes.get(shape.key) is not shape:
            return  # or the shape was dropped meanwhile
        shared = shape.shared
        self._total += size - before
        self._sizes[shape.key] = size
        if not shared.size:
            shared.size = shared.nbytes
            self._total += shared.size
        while self._total > self._budget and len(self._shapes) > 1:
            _, oldest = self._shapes.popitem(last=False)
            self._total -= self._sizes.pop(oldest.key)
            oldest.shared.shapes -= 1
            if not oldest.shared.shapes:
                self._total -= oldest.shared.size
                del self._shared[oldest.shared.key]

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
