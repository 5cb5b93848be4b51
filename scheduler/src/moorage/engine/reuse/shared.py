"""The shared answers: those that read nodes alone, for every shape that agrees in what they read.

A new shape mostly differs from known ones in its requests. Taints, selectors, images and features
are then answered already: these answers are kept by the parts of a pod that they depend on, and no
pod that comes to a row or leaves it changes them. A shape adds the answers that read pods.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import NDArray

from moorage.engine.attempt import Attempt, CycleError
from moorage.engine.filters.asking import ask_filters
from moorage.engine.filters.filter_results import ROW_BYTES, FilterResults
from moorage.engine.reuse.pre_filters import PreFilterAnswers
from moorage.engine.scoring import ask_score, check_range, normalized, pre_scored
from moorage.framework.caches import NO_CHANGES, RowFollower
from moorage.framework.capabilities import Reads
from moorage.framework.cycle_state import CycleState
from moorage.framework.points import ScoreArray
from moorage.framework.profile import Profile
from moorage.snapshot.shape import PartKind
from moorage.snapshot.view import NodeView

# Size of shared answers without arrays; a guess.
_ANSWERS_BYTES: Final = 8 * 1024


class SharedPlugins:
    """The reusable plugins of a profile that filter or score by nodes alone.

    Parameters
    ----------
    profile
        The profile.

    Attributes
    ----------
    names
        Their names.
    kinds
        The parts of a pod that they read.
    filters
        Indexes of the Filters that read nodes alone.
    scores, pre_scores
        The plugins whose raw scores depend on nodes alone.
    """

    def __init__(self, profile: Profile) -> None:
        self.filters = [each.index for each in profile.filter_forms if each.by_node]
        forms = profile.score_forms
        self.scores = [each for each in forms if each.reused and each.reads == Reads.NODE]
        scoring = {each.name for each in self.scores}
        self.pre_scores = [each for each in profile.pre_scores if each.name in scoring]
        self.names = frozenset(scoring | {profile.filters[index].name for index in self.filters})
        self.pre_filters = [each for each in profile.pre_filters if each.name in self.names]
        kinds: dict[PartKind[Any], None] = {}
        for name in sorted(self.names):
            kinds.update(dict.fromkeys(profile.capabilities[name].shape_parts or ()))
        self.kinds = tuple(kinds)


class SharedScores(msgspec.Struct, eq=False):
    """The raw scores of every row.

    Parameters
    ----------
    skipped
        Names of the plugins whose PreScore answered Skip.
    raw
        By plugin, int64, (n,): raw scores.
    flat
        By plugin, the raw score of every row, where all rows have the same score.
    fixed_n
        int64, (n,): weighted sum of the plugins whose raw scores are final.
    normalized
        By plugin with a normaliser, the normalised score of a flat one; filled on demand.
    """

    skipped: frozenset[str]
    raw: dict[str, ScoreArray]
    flat: dict[str, int]
    fixed_n: ScoreArray
    normalized: dict[str, int] = {}

    def note_flat(self, name: str) -> None:
        """Note whether all rows have the same raw score of a plugin."""
        raw_n = self.raw[name]
        if len(raw_n) and raw_n.min() == raw_n.max():
            raw = int(raw_n[0])
            if self.flat.get(name) != raw:
                self.normalized.pop(name, None)
            self.flat[name] = raw
        else:
            self.flat.pop(name, None)


class SharedAnswers:
    """The answers that read nodes alone, for pods that agree in the parts these answers need.

    Parameters
    ----------
    plugins
        The plugins that are asked.
    attempt
        A pod with these parts, with a cycle state that only these plugins write.
    key
        The ids of these parts; also an attribute.

    Attributes
    ----------
    state
        The state of the attempt.
    pre_filters
        The answers of PreFilter.
    shapes
        How many shapes use these answers; kept by their owner.
    size
        The memory that was counted last, bytes; kept by their owner.
    """

    __slots__ = (
        "_attempt",
        "_filtered",
        "_follower",
        "_plugins",
        "_scores",
        "key",
        "pre_filters",
        "shapes",
        "size",
        "state",
    )

    def __init__(self, plugins: SharedPlugins, attempt: Attempt, key: tuple[int, ...]) -> None:
        self.key = key
        self._plugins = plugins
        self._attempt = attempt
        self._follower = RowFollower(attempt.snapshot.table.node_log)
        self._filtered: FilterResults | None = None
        self._scores: SharedScores | None = None
        self.state = attempt.state
        self.pre_filters = PreFilterAnswers(plugins.pre_filters, self.state)
        self.shapes = self.size = 0

    @property
    def nbytes(self) -> int:
        """Memory of the answers, bytes, as if all were there; except the arrays it is a guess."""
        scored = 1 + len(self._plugins.scores)
        return _ANSWERS_BYTES + self._attempt.snapshot.num_nodes * (ROW_BYTES + 8 * scored)

    def filtered(self, asking: CycleState) -> FilterResults:
        """Return the result of these Filters on every row; not to be changed.

        Parameters
        ----------
        asking
            State of the attempt that asks; its meter counts the calls of plugins.
        """
        self._follow()
        filtered = self._filtered
        if filtered is None:
            self.state.metered_like(asking)
            attempt = self._attempt
            filtered = ask_filters(attempt, attempt.snapshot.all(), only=self._plugins.filters)
            if not filtered.is_broken:  # an error may be gone the next time
                self._filtered = filtered
        return filtered

    def scores(self, asking: CycleState) -> SharedScores:
        """Return the raw scores of every row; not to be changed.

        Raises
        ------
        CycleError
            A plugin failed, or a final score is out of range.
        """
        self._follow()
        scores = self._scores
        if scores is None:
            self.state.metered_like(asking)
            attempt = self._attempt
            skipped = pre_scored(attempt, self._plugins.pre_scores)
            scores = SharedScores(skipped, {}, {}, np.zeros(attempt.snapshot.num_nodes, np.int64))
            for forms in self._plugins.scores:
                if forms.name not in skipped:
                    raw_n = ask_score(attempt, forms, attempt.snapshot.all())
                    if forms.normalizer is None:
                        check_range(forms.plugin, raw_n)
                        scores.fixed_n += forms.weight * raw_n
                    scores.raw[forms.name] = raw_n
                    scores.note_flat(forms.name)
            self._scores = scores
        return scores

    def flat_normalized(self, asking: CycleState) -> dict[str, int]:
        """Return the normalised scores of the plugins that score all rows alike, by plugin.

        Raises
        ------
        CycleError
            A plugin failed, or a final score is out of range.
        """
        scores = self.scores(asking)
        normalized_of = scores.normalized
        for forms in self._plugins.scores:
            name = forms.name
            if forms.normalizer and name in scores.flat and name not in normalized_of:
                self.state.metered_like(asking)
                one = np.array([scores.flat[name]], np.int64)
                normalized_of[name] = int(normalized(self._attempt, forms, one)[0])
        return normalized_of

    # -- changes -------------------------------------------------------------------------------

    def _follow(self) -> None:
        """Bring the answers about changed nodes up to date, or forget all."""
        changes = self._follower.changes()
        if changes is NO_CHANGES:
            return
        self.state.meter = None  # keeping answers up to date belongs to no extension point
        n = self._attempt.snapshot.num_nodes
        if changes is None or changes.are_many(n):
            self._filtered = self._scores = None
            return
        rows = np.array(changes.nodes, np.int64)
        view = self._attempt.snapshot.rows(rows)
        if self._filtered is not None:
            self._filtered.put_rows(
                rows, ask_filters(self._attempt, view, only=self._plugins.filters)
            )
            if self._filtered.is_broken:
                self._filtered = None
        if self._scores is not None:
            try:
                self._score_again(self._scores, view, rows)
            except CycleError:  # perhaps a row that is not feasible; asked again once it is
                self._scores = None

    def _score_again(self, scores: SharedScores, view: NodeView, rows: NDArray[np.int64]) -> None:
        for forms in self._plugins.scores:
            if forms.name in scores.skipped:
                continue
            raw_n, new = scores.raw[forms.name], ask_score(self._attempt, forms, view)
            if forms.normalizer is None:
                check_range(forms.plugin, new)
                scores.fixed_n[rows] += forms.weight * (new - raw_n[rows])
            raw_n[rows] = new
            scores.note_flat(forms.name)
