"""All suggestions of a pod, the smallest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from moorage.explain.answer import Suggestion
from moorage.explain.suggestions.group_room import fits_with_group, room_for_group
from moorage.explain.suggestions.holders import users_of_data, users_of_devices
from moorage.explain.suggestions.leaving import leaving_pods
from moorage.explain.suggestions.members import group_changes
from moorage.explain.suggestions.node_changes import changed_nodes
from moorage.explain.suggestions.nodes import more_nodes
from moorage.explain.suggestions.pairs import Pairs, find_pairs
from moorage.explain.suggestions.parts import relaxations, tolerations
from moorage.explain.suggestions.plugin_offers import offered
from moorage.explain.suggestions.priorities import priorities
from moorage.explain.suggestions.ranked import RankedSuggestion
from moorage.explain.suggestions.requests import smaller_requests
from moorage.explain.suggestions.scaling import smaller_workloads
from moorage.explain.trying import Trying

SUGGESTIONS_MOST: Final = 5
_KIND_MOST: Final = 2

_KINDS: Final[tuple[Callable[[Trying], Iterator[RankedSuggestion]], ...]] = (
    smaller_requests,
    offered,
    tolerations,
    relaxations,
    changed_nodes,
    users_of_data,
    users_of_devices,
    leaving_pods,
    smaller_workloads,
    priorities,
    more_nodes,
)


class Suggestions(NamedTuple):
    """The suggestions, and notes about what was not tried."""

    suggestions: tuple[Suggestion, ...]
    notes: tuple[str, ...] = ()


def find_suggestions(trying: Trying, *, preempts: bool, pair_nodes_most: int) -> Suggestions:
    """Return at most five single changes that let the pod fit, at most two of a kind.

    Where there is none, pairs of changes.

    Parameters
    ----------
    trying
        The pod and the cluster.
    preempts
        Whether the pod preempts at its own priority, so that no other priority is sought.
    pair_nodes_most
        How many nodes are asked about for pairs, at most.
    """
    kinds = [kind for kind in _KINDS if not (preempts and kind is priorities)]
    suggestions = [each for kind in kinds for each in kind(trying)]
    if trying.group is not None:
        suggestions = [
            each for each in suggestions if fits_with_group(trying.group, trying.pod, each)
        ]
        suggestions += group_changes(trying.group)
        suggestions += room_for_group(trying.group, trying.inquiry)
    if suggestions:
        return Suggestions(_chosen(suggestions), _untried(trying))
    if preempts:
        return Suggestions((), _untried(trying))
    pairs = find_pairs(trying, kinds, nodes_most=pair_nodes_most)
    return Suggestions(_chosen(pairs.suggestions), (*_untried(trying), *_about(pairs)))


def _untried(trying: Trying) -> tuple[str, ...]:
    """Return a note where the bound of tries left changes untried."""
    if not trying.left_out:
        return ()
    return (f"{trying.left_out} changes were not tried; --thorough tries more.",)


def _about(pairs: Pairs) -> tuple[str, ...]:
    """Return a note about pairs: whether some help, and how many were not tried."""
    if not pairs.of:
        return ()
    helps = (
        "No single change helps" if pairs.suggestions else "No change helps, single or in a pair"
    )
    if pairs.tried == pairs.of:
        return (f"{helps}; each first change was tried with others.",)
    tried = f"{pairs.tried} of {pairs.of} first changes were tried with others"
    return (f"{helps}, as far as was tried: {tried}; --thorough tries more.",)


def _chosen(suggestions: list[RankedSuggestion]) -> tuple[Suggestion, ...]:
    """Return the smallest of some suggestions, a few of each kind."""
    suggestions.sort(key=lambda each: (each.size, -each.suggestion.nodes, each.suggestion.text))
    chosen: list[Suggestion] = []
    numbers: Counter[str] = Counter()
    leaving: set[str] = set()  # a pod may be found twice, for itself and for what it has
    for each in suggestions:
        if each.suggestion.delete in leaving:
            continue
        if numbers[each.suggestion.kind] < _KIND_MOST and len(chosen) < SUGGESTIONS_MOST:
            numbers[each.suggestion.kind] += 1
            chosen.append(each.suggestion)
            leaving |= {each.suggestion.delete} - {""}
    return tuple(chosen)
