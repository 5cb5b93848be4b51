"""The suggestions of a workload: each change of one pod is tried for all that lack a node."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any, Final

import msgspec

from moorage.api.pod import Pod
from moorage.api.resources import NODES
from moorage.explain.answer import Suggestion
from moorage.explain.patches import patched
from moorage.explain.suggestions.node_changes import node_changed
from moorage.explain.suggestions.nodes import (
    FurtherNode,
    free_node_name,
    further_nodes,
    node_added,
    node_like,
    node_to_create,
)
from moorage.explain.workloads.answer import ObjectSuggestion
from moorage.explain.workloads.placing import PLACED_MOST, has_claims, number_placed, place_pods
from moorage.framework.profile import Profile
from moorage.service.core import Core

_NODES_MOST: Final = 64
"""Further nodes of one shape, at most; a guess."""
_OF_GROUPS: Final = frozenset({"member"})


class HelpedPods(msgspec.Struct, frozen=True):
    """Pods of one class, for which changes are tried.

    Parameters
    ----------
    core, profile
        The scheduler.
    pods
        The pods; equal but for their names.
    """

    core: Core
    profile: Profile
    pods: Sequence[Pod]

    @property
    def example(self) -> Pod:
        """The pod that was explained."""
        return self.pods[0]

    @property
    def tried(self) -> int:
        """The number of pods for which a change is tried."""
        if self.in_gang:
            return len(self.pods)
        return 1 if has_claims(self.example) else min(len(self.pods), PLACED_MOST)

    @property
    def in_gang(self) -> bool:
        """Whether the pods are placed together or not at all: changes are tried so already."""
        terms = self.core.snapshot.groups.terms_of(self.example)
        return terms is not None and terms.gang and terms.minimum > 1


def number_helped(of: HelpedPods, suggestion: Suggestion) -> int:
    """Return how many of the pods get a node with a change, as far as was tried."""
    if suggestion.kind == "minimum":
        placed: int = suggestion.changes[0].patch["spec"]["minMember"]
        return min(of.tried, placed)
    if of.in_gang or suggestion.kind in _OF_GROUPS:
        return of.tried
    core, snapshot, pods = of.core, of.core.snapshot, of.pods[:PLACED_MOST]
    if has_claims(of.example):
        return 1
    if suggestion.patch:
        pods = [patched(each, suggestion.patch) for each in pods]
    with ExitStack() as changed:
        for each in suggestion.changes:
            if each.kind != NODES.kind:
                continue
            changed.enter_context(node_changed(snapshot, each.name, each.patch))
        trial = changed.enter_context(snapshot.trial())
        for name in {suggestion.delete, *suggestion.also_delete, *suggestion.evicted} - {""}:
            namespace, _, pod_name = name.partition("/")
            pod = core.store.get(namespace, pod_name)
            if pod is not None and snapshot.table.node_of_pod(pod.uid) is not None:
                trial.remove_pod(pod.uid)
        return place_pods(of.profile, snapshot, pods, trial)


def more_nodes_for(of: HelpedPods) -> Iterator[ObjectSuggestion]:
    """Yield the number of further nodes of one shape on which the pods get a place."""
    snapshot = of.core.snapshot
    if has_claims(of.example):
        return
    for each in further_nodes(snapshot, of.example):
        suggestion = _with_such_nodes(of, each)
        if suggestion is not None:
            yield suggestion
            return


def _with_such_nodes(of: HelpedPods, such: FurtherNode) -> ObjectSuggestion | None:
    """Return how many such nodes place the pods; None where one helps none of them."""
    count = min(len(of.pods), PLACED_MOST)
    helps, created = _with_nodes(of, such, 1)
    if not helps:
        return None
    if helps < count:
        number = min(-(-count // helps), _NODES_MOST)
        helps, created = _with_nodes(of, such, number)
    nodes = "one more node" if len(created) == 1 else f"{len(created)} more nodes"
    return ObjectSuggestion(
        kind="node",
        text=f"{nodes} {such.words}",
        helps=helps,
        tried=count,
        of=len(of.pods),
        create=created[:1],
        copies=len(created),
    )


def _with_nodes(
    of: HelpedPods, such: FurtherNode, number: int
) -> tuple[int, tuple[dict[str, Any], ...]]:
    """Return how many pods get a place with so many further nodes, and the nodes."""
    snapshot, created = of.core.snapshot, list[dict[str, Any]]()
    with ExitStack() as added:
        for _ in range(number):
            node = node_like(such.node, free_node_name(snapshot))
            created.append(node_to_create(node))
            added.enter_context(node_added(snapshot, node, such.row))
        return number_placed(of.profile, snapshot, of.pods[:PLACED_MOST]), tuple(created)
