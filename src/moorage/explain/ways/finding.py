"""All ways out of a pod, the smallest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from moorage.explain.answer import WayOut
from moorage.explain.trying import Trying
from moorage.explain.ways.found import Found
from moorage.explain.ways.leaving import leaving_pods
from moorage.explain.ways.nodes import more_nodes, uncordoned
from moorage.explain.ways.parts import relaxations, tolerations
from moorage.explain.ways.priorities import priorities
from moorage.explain.ways.requests import smaller_requests

WAYS_MOST: Final = 5
_KIND_MOST: Final = 2

_KINDS: Final[tuple[Callable[[Trying], Iterator[Found]], ...]] = (
    smaller_requests,
    tolerations,
    relaxations,
    uncordoned,
    leaving_pods,
    priorities,
    more_nodes,
)


def find_ways(trying: Trying) -> tuple[WayOut, ...]:
    """Return at most five single changes that let the pod fit, at most two of a kind."""
    found = [each for kind in _KINDS for each in kind(trying)]
    found.sort(key=lambda each: (each.size, -each.way.nodes, each.way.text))
    chosen: list[WayOut] = []
    kinds: Counter[str] = Counter()
    for each in found:
        if kinds[each.way.kind] < _KIND_MOST and len(chosen) < WAYS_MOST:
            kinds[each.way.kind] += 1
            chosen.append(each.way)
    return tuple(chosen)
