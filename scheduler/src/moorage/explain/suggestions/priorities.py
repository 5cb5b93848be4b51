"""Suggestions by preemption: the priority with which the profile's preemption finds victims.

The profile's PostFilter plugins choose the victims, over the nodes that lack least. In the cluster
they see every node, so they may choose another one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec
import numpy as np

from moorage.api.meta import ObjectMeta
from moorage.api.patch_operations import Operation, put
from moorage.api.pod import Pod
from moorage.api.policy import PriorityClass
from moorage.engine.cycle import Cycle
from moorage.engine.search import Search
from moorage.engine.select_node import smallest_name
from moorage.explain.answer import Suggestion
from moorage.explain.patches import patched
from moorage.explain.suggestions.budgets import against_text
from moorage.explain.suggestions.leaving import have_one_controller, lacking_least
from moorage.explain.suggestions.ranked import AGAINST_BUDGET, PRIORITY, RankedSuggestion
from moorage.explain.trying import Trying

HIGHEST: Final = 1_000_000_000
"""The highest priority of a PriorityClass that users may make."""
_NODES_MOST: Final = 16
_VICTIMS_NAMED: Final = 5
_PER_VICTIM: Final = 0.1


class Preempted(msgspec.Struct, frozen=True):
    """The choice of preemption: a node, its victims, and those that do not leave anyway."""

    node: str
    victims: tuple[Pod, ...]
    evicted: tuple[Pod, ...]


def preempt(trying: Trying, pod: Pod) -> Preempted | None:
    """Run the profile's PostFilter for a pod that fits nowhere; None where it would evict nobody.

    Where all victims are terminating, the pod has to wait for them at any priority.
    """
    profile, snapshot = trying.inquiry.attempt.profile, trying.inquiry.snapshot
    if not profile.post_filters or trying.inquiry.pre_filter.status.rejected:
        return None
    rows = lacking_least(trying)[:_NODES_MOST]
    if not any(other.priority < pod.priority for row in rows for other in snapshot.pods(int(row))):
        return None
    found = trying.search(pod)
    if found is None or found.filtered.passed.any():
        return None
    result = Cycle(profile, snapshot, smallest_name, reuse=False).post_filter(_within(found, rows))
    chosen = result.result
    if chosen is None or not chosen.nominated_node:
        return None
    evicted = tuple(each for each in chosen.victims if not each.metadata.deletion_timestamp)
    return Preempted(chosen.nominated_node, chosen.victims, evicted) if evicted else None


def _within(search: Search, rows: np.ndarray[tuple[int], np.dtype[np.int64]]) -> Search:
    """Return a search in which the other rows were not looked at."""
    there = np.isin(search.view.row_numbers(), rows)
    view = search.answers.attempt.snapshot.rows(search.view.row_numbers()[there])
    return msgspec.structs.replace(
        search, view=view, filtered=search.filtered.at_rows(np.flatnonzero(there))
    )


def priorities(trying: Trying) -> Iterator[RankedSuggestion]:
    """Yield the lowest priority found with which the pod would preempt, and its victims."""
    pod = trying.pod
    if pod.spec.preemption_policy == "Never":
        return
    highest = preempt(trying, with_class(pod, _new_class(HIGHEST)))
    if highest is None:
        return
    needed = max(victim.priority for victim in highest.victims) + 1
    if not pod.priority < needed < HIGHEST:
        return
    known = _class_of(trying, needed)
    chosen = known or _new_class(needed, _class_names(trying))
    found = preempt(trying, with_class(pod, chosen))
    if found is not None and not any(have_one_controller(pod, each) for each in found.evicted):
        yield _ranked(trying, chosen, found, create=known is None)


def _class_of(trying: Trying, needed: int) -> PriorityClass | None:
    """Return the lowest PriorityClass of a priority or more with which the pod preempts."""
    known = trying.inquiry.snapshot.listers.priority_classes.all()
    classes = [
        each
        for each in known
        if needed <= each.value <= HIGHEST  # above are those of the system
        if each.preemption_policy != "Never"
    ]
    return min(classes, key=lambda each: (each.value, each.name), default=None)


def _class_names(trying: Trying) -> frozenset[str]:
    return frozenset(each.name for each in trying.inquiry.snapshot.listers.priority_classes.all())


def _new_class(value: int, taken: frozenset[str] = frozenset()) -> PriorityClass:
    """Return a PriorityClass to create, whose name is not taken."""
    name = f"priority-{value}" if value >= 0 else f"priority-minus-{-value}"
    while name in taken:
        name += "-preempting"
    return PriorityClass(metadata=ObjectMeta(name=name), value=value)


def with_class(pod: Pod, chosen: PriorityClass) -> Pod:
    """Return a pod with a PriorityClass."""
    return patched(pod, _patch(chosen))


def _patch(chosen: PriorityClass) -> tuple[Operation, ...]:
    # The API refuses a priority that is not the class's; a pod that was read has one.
    return put("/spec/priorityClassName", chosen.name), put("/spec/priority", chosen.value)


def _ranked(
    trying: Trying, chosen: PriorityClass, preemption: Preempted, *, create: bool
) -> RankedSuggestion:
    snapshot = trying.inquiry.snapshot
    victims = [victim.full_name for victim in preemption.evicted]
    names = ", ".join(victims[:_VICTIMS_NAMED])
    more = f" and {len(victims) - _VICTIMS_NAMED} more" if len(victims) > _VICTIMS_NAMED else ""
    against = against_text(snapshot, preemption.evicted)
    text = f"priorityClassName {chosen.name} (priority {chosen.value})"
    if create:
        text = f"a new PriorityClass {chosen.name} of value {chosen.value} as priorityClassName"
    suggestion = Suggestion(
        kind="priority",
        text=f"{text}: it would evict {names}{more} from {preemption.node}{against}",
        nodes=1,
        node=preemption.node,
        patch=_patch(chosen),
        create=(_manifest(chosen),) if create else (),
        evicted=tuple(victims),
    )
    size = PRIORITY + min(1.0, _PER_VICTIM * len(victims))
    return RankedSuggestion(AGAINST_BUDGET if against else size, suggestion)


def _manifest(chosen: PriorityClass) -> dict[str, Any]:
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": chosen.name},
        "value": chosen.value,
    }
