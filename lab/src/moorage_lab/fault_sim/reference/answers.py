"""Rules about what an attempt answers besides its node: the totals of nodes, and the reasons.

They ask `moorage_lab.fault_sim.reference`, which computes both from the objects that the watches
have shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

from moorage.api.codec import from_dict
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES
from moorage.engine.decision import Decision, Outcome
from moorage.framework.profile import Profile
from moorage.snapshot.listers import HasMetadata, Lister, Listers
from moorage_lab.fault_sim.history import History, Obj, is_finished, node_of
from moorage_lab.fault_sim.reference.attempt import (
    Question,
    are_default_scores,
    reasons,
    rejections,
    totals,
)
from moorage_lab.fault_sim.reference.volumes import claim_name, is_bound

_MIGRATED: Final = "storage.alpha.kubernetes.io/migrated-plugins"

K = TypeVar("K", bound=HasMetadata)


class Decoder:
    """Reads objects of the server; one that was read before is not read again."""

    def __init__(self) -> None:
        self._pods: dict[str, tuple[Obj, Pod]] = {}
        self._nodes: dict[str, tuple[Obj, Node]] = {}

    def question(
        self, pod: Obj, history: History, decided: Mapping[str, Obj], listers: Listers
    ) -> Question:
        """Return a question about a pod.

        Parameters
        ----------
        pod
            The pod.
        history
            What its scheduler must know.
        decided
            The assumed pods by uid, as they were when they were decided: so they count.
        listers
            The objects of other kinds.
        """
        own = pod["metadata"]["uid"]
        on: dict[str, list[Pod]] = {name: [] for name in history.nodes}
        for uid, each in history.pods.items():
            node = node_of(each)
            if uid != own and node in on and not is_finished(each):
                on[node].append(self._pod(decided.get(uid, each)))
        cluster = [(self._node(node), on[name]) for name, node in history.nodes.items()]
        return Question(self._pod(pod), cluster, listers)

    def _pod(self, raw: Obj) -> Pod:
        known = self._pods.get(raw["metadata"]["uid"])
        if known is None or known[0] is not raw:
            known = self._pods[raw["metadata"]["uid"]] = raw, from_dict(Pod, raw)
        return known[1]

    def _node(self, raw: Obj) -> Node:
        known = self._nodes.get(raw["metadata"]["name"])
        if known is None or known[0] is not raw:
            known = self._nodes[raw["metadata"]["name"]] = raw, from_dict(Node, raw)
        return known[1]


def is_current(lister: Lister[K], stored: Mapping[Any, Obj]) -> bool:
    """Return whether a lister has the objects that the server has, in the same versions."""
    listed = sorted(each.metadata.resource_version for each in lister.all())
    return listed == sorted(each["metadata"]["resourceVersion"] for each in stored.values())


def volumes_are_known(question: Question, history: History) -> bool:
    """Return whether the reference knows all about the volumes of a pod.

    Each claim is bound, or waits for the pod; nothing is assumed of it, and no update is on its
    way. The reference does not translate volumes for CSI drivers that replace in-tree plugins.
    """
    pod, _, listers = question
    if any(_MIGRATED in each.metadata.annotations for each in listers.csi_nodes.all()):
        return False
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is None:
            continue
        claim = listers.persistent_volume_claims.get(name, pod.namespace)
        if claim is None:
            return False
        of_class = listers.storage_classes.get(claim.spec.storage_class_name or "")
        waits = of_class is not None and of_class.volume_binding_mode == "WaitForFirstConsumer"
        if not is_bound(claim) and (not waits or claim.spec.volume_name):
            return False
    return is_current(
        listers.persistent_volume_claims, history.server_objects(PERSISTENT_VOLUME_CLAIMS.qualified)
    ) and is_current(
        listers.persistent_volumes, history.server_objects(PERSISTENT_VOLUMES.qualified)
    )


def wrong_node(question: Question, decision: Decision, profile: Profile) -> Iterator[str]:
    """Yield how the answer about a pod with volumes differs from that of the reference."""
    if decision.outcome is Outcome.REJECT and decision.diagnosis is None:
        return
    turned_away = rejections(question)
    feasible = [node.name for node, _ in question.cluster if node.name not in turned_away]
    if decision.outcome is Outcome.REJECT and not feasible:
        yield from wrong_reasons(question, decision)
    elif decision.diagnosis is not None and decision.diagnosis.pre_filter_message:
        return
    elif decision.node_name not in feasible:
        gets = decision.node_name or "no node"
        fits = ", ".join(feasible) or "none"
        yield f"{question.pod.namespace}/{question.pod.name} gets {gets}; of its nodes fit: {fits}"
    else:
        yield from wrong_total(question, decision, profile, feasible)


def wrong_total(
    question: Question, decision: Decision, profile: Profile, feasible: Sequence[str]
) -> Iterator[str]:
    """Yield how the totals of an attempt differ from those of the reference."""
    if not are_default_scores({plugin.name for plugin in profile.scores}):
        return  # the set-ups without scores, and with others
    if decision.feasible != len(feasible) or len(feasible) < 2:
        return
    totals_by_node = totals(question, feasible)
    top = max(totals_by_node.values())
    best = sorted(name for name, total in totals_by_node.items() if total == top)
    name = f"{question.pod.namespace}/{question.pod.name}"
    if decision.node_name not in best:
        yield f"{name} gets {decision.node_name}; best are {', '.join(best)} of {totals_by_node}"
    elif (decision.total_score, decision.ties) != (top, len(best)):
        yield (
            f"{name}: {decision.ties} nodes have a total of {decision.total_score}; "
            f"{len(best)} have {top} of {totals_by_node}"
        )


def wrong_reasons(question: Question, decision: Decision) -> Iterator[str]:
    """Yield how the reasons of a rejected pod differ from those of the reference."""
    diagnosis = decision.diagnosis
    if diagnosis is None or diagnosis.pre_filter_message:
        return
    why = reasons(question)
    name, nodes = f"{question.pod.namespace}/{question.pod.name}", len(question.cluster)
    if diagnosis.num_nodes != nodes:
        yield f"{name}: {diagnosis.num_nodes} nodes are counted, and there are {nodes}"
    if diagnosis.reason_counts != why.reasons:
        yield f"{name}: the reasons are {diagnosis.reason_counts}, and should be {why.reasons}"
    elif diagnosis.unschedulable_plugins != why.plugins:
        both = diagnosis.unschedulable_plugins, why.plugins
        rejectors, wanted = (", ".join(sorted(each)) or "nobody" for each in both)
        yield f"{name}: rejected by {rejectors}, and should be by {wanted}"
