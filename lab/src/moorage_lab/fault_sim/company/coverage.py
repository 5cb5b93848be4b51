"""Which combinations of features the drawn worlds have: of two, and of three."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Final

import msgspec

from moorage_lab.fault_sim.company.features import FEATURES

_RARE: Final = 3


class Coverage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """How many combinations of features occur together in a world.

    Parameters
    ----------
    pairs, pairs_possible
        Combinations of two features: those that occur, and all.
    triples, triples_possible
        The same of three features.
    missing_pairs
        The pairs that no world has.
    rare_pairs
        The pairs that fewer than three worlds have.
    worlds_by_feature
        Number of worlds that have each feature.
    """

    pairs: int
    pairs_possible: int
    triples: int
    triples_possible: int
    missing_pairs: list[tuple[str, ...]]
    rare_pairs: list[tuple[str, ...]]
    worlds_by_feature: dict[str, int]


def coverage_of(worlds: Iterable[tuple[str, ...]], features: Sequence[str] = FEATURES) -> Coverage:
    """Count the combinations in the features of worlds, of all features that there are."""
    single: Counter[str] = Counter()
    pairs: Counter[tuple[str, ...]] = Counter()
    triples: set[tuple[str, ...]] = set()
    for world in worlds:
        drawn = sorted(world)
        single.update(drawn)
        pairs.update(combinations(drawn, 2))
        triples.update(combinations(drawn, 3))
    possible = list(combinations(sorted(features), 2))
    return Coverage(
        pairs=len(pairs),
        pairs_possible=len(possible),
        triples=len(triples),
        triples_possible=sum(1 for _ in combinations(features, 3)),
        missing_pairs=[pair for pair in possible if not pairs[pair]],
        rare_pairs=[pair for pair in possible if 0 < pairs[pair] < _RARE],
        worlds_by_feature={name: single[name] for name in sorted(features)},
    )
