"""Run times learned by class, with what a narrow class lacks taken from the wider ones."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

from moorage.estimates.laws import RunTimeLaw, law_of
from moorage.estimates.sketch import RunTimeSketch

CLASSES_MOST: Final = 4000
"""Classes that are remembered: at some 40 bins each about 10 MB. The longest unused ones go."""
RUNS_LEAST: Final = 5
"""A guess: with fewer run times in the widest class, nothing is known."""
_WIDER_RUNS: Final = 4.0
"""A guess: the wider class counts as so many run times of the narrow one."""
_RATIO: Final = "ratio\n"
"""Before the name of a class: its sketch counts run times as multiples of the declared one."""


class RunTimeBook:
    """Learned run times.

    Parameters
    ----------
    classes_most
        So many classes are remembered.
    """

    def __init__(self, *, classes_most: int = CLASSES_MOST) -> None:
        self._classes_most = classes_most
        # In the order of the last use.
        self._sketches: dict[str, RunTimeSketch] = {}
        self.version = 0
        # Laws by the narrowest known class, as of a version.
        self._laws: dict[str, RunTimeLaw] = {}
        self._laws_version = 0

    def note_run(
        self, classes: Sequence[str], seconds: float, *, declared: float | None = None
    ) -> None:
        """Learn that a pod of some classes ran for so long, and how long it had declared."""
        self.version += 1
        for name in reversed(classes):
            self._sketch(name).add_value(seconds)
            if declared:
                self._sketch(_RATIO + name).add_value(seconds / declared)
        while len(self._sketches) > self._classes_most:
            del self._sketches[next(iter(self._sketches))]

    def law(
        self,
        classes: Sequence[str],
        *,
        declared: float | None = None,
        deadline: float = math.inf,
    ) -> RunTimeLaw | None:
        """Return the law of a pod's run time; None where nothing is known.

        Parameters
        ----------
        classes
            The classes of the pod, the narrowest first.
        declared
            The run time that the pod declares; where pods that declared theirs were seen to end,
            the law says by how much such declarations are off.
        deadline
            Seconds after which the pod is ended.
        """
        if declared is not None:
            law = self._learned_law([_RATIO + name for name in classes])
            if law is None:
                return RunTimeLaw(scale=declared, most=deadline)
            return msgspec.structs.replace(law, scale=declared, most=deadline)
        law = self._learned_law(classes)
        if law is None:
            return None if math.isinf(deadline) else RunTimeLaw(scale=deadline)
        return law if math.isinf(deadline) else msgspec.structs.replace(law, most=deadline)

    def _learned_law(self, classes: Sequence[str]) -> RunTimeLaw | None:
        """Return the law of the narrowest class that is known, within all wider ones."""
        known = [name for name in classes if name in self._sketches]
        if not known or self._sketches[known[-1]].total < RUNS_LEAST or known[-1] != classes[-1]:
            return None
        if self._laws_version != self.version:
            self._laws, self._laws_version = {}, self.version
        law = self._laws.get(known[0])
        if law is None:
            law = self._laws[known[0]] = law_of(self._shares(known))
        return law

    def _shares(self, classes: Sequence[str]) -> dict[int, float]:
        """Return the share of each bin, the wider classes counting where a narrow one is small."""
        shares: dict[int, float] = {}
        for name in reversed(classes):
            sketch = self._sketches[name]
            whole = sketch.total + (_WIDER_RUNS if shares else 0.0)
            mixed = {index: _WIDER_RUNS * share / whole for index, share in shares.items()}
            for index, count in sketch.bins.items():
                mixed[index] = mixed.get(index, 0.0) + count / whole
            shares = mixed
        return shares

    def _sketch(self, name: str) -> RunTimeSketch:
        sketch = self._sketches.pop(name, None) or RunTimeSketch()
        self._sketches[name] = sketch
        return sketch

    def as_bins(self) -> dict[str, dict[int, float]]:
        """Return everything that was learned, for a file or another process."""
        return {name: sketch.bins for name, sketch in self._sketches.items()}

    def load_bins(self, bins: Mapping[str, Mapping[int, float]]) -> None:
        """Take over what was learned before."""
        self._sketches = {name: RunTimeSketch(dict(each)) for name, each in bins.items()}
        while len(self._sketches) > self._classes_most:
            del self._sketches[next(iter(self._sketches))]
        self.version += 1
