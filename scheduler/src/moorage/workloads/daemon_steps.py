"""Decides on which nodes a daemon set needs pods, and the steps towards that; no I/O.

Place in the flow: `moorage_sandbox.controllers.daemon_set` asks here and carries out the plan. The
scheduler binds the pods; the required node affinity of each pod names its node.

Rules: kubernetes v1.36 pkg/controller/daemon/{daemon_controller,update}.go and
pkg/controller/daemon/util/daemonset_util.go.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from moorage.api.codec import from_dict
from moorage.api.meta import NodeSelector
from moorage.api.node import Node
from moorage.api.pod import Pod, PodSpec, Toleration
from moorage.api.resources import DAEMON_SETS
from moorage.api.selectors import compile_node_selector
from moorage.api.taints import NO_EXECUTE, NO_SCHEDULE, find_untolerated
from moorage.workloads.objects import Json, Whole, owner_reference
from moorage.workloads.pods import (
    deletion_order,
    is_available,
    is_ready,
    pod_from_template,
    scaled,
)
from moorage.workloads.replicas import min_ready_seconds

REVISION_LABEL: Final = "controller-revision-hash"
_GENERATION_LABEL: Final = "pod-template-generation"
# Taints that every daemon pod tolerates, besides those of its template
# (AddOrUpdateDaemonPodTolerations).
_TOLERATED: Final = (
    ("node.kubernetes.io/not-ready", NO_EXECUTE),
    ("node.kubernetes.io/unreachable", NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE),
)
_HOST_NETWORK: Final = ("node.kubernetes.io/network-unavailable", NO_SCHEDULE)


@dataclass(slots=True)
class Plan:
    """Nodes that need a pod, and pods to delete; pods in `failed` have ended."""

    create: list[str] = field(default_factory=list)
    delete: list[Pod] = field(default_factory=list)
    failed: list[Pod] = field(default_factory=list)


def pod_of(daemon_set: Whole, node_name: str, revision: str) -> Json:
    """Return the pod of a node, not named yet."""
    pod = pod_from_template(
        daemon_set.spec.get("template") or {},
        namespace=daemon_set.namespace,
        owner=owner_reference(daemon_set, DAEMON_SETS),
        prefix=f"{daemon_set.name}-",
    )
    labels = pod["metadata"].setdefault("labels", {})
    labels |= {REVISION_LABEL: revision, _GENERATION_LABEL: _template_generation(daemon_set)}
    spec = pod["spec"]
    _pin(spec, node_name)
    spec["tolerations"] = tolerations_of(spec)
    return pod


def _template_generation(daemon_set: Whole) -> str:
    known = daemon_set.metadata.annotations.get("deprecated.daemonset.template.generation")
    return known or str(daemon_set.metadata.generation)


def _pin(spec: Json, node_name: str) -> None:
    """Replace the required node affinity by one to a single node, in place."""
    field_ = {"key": "metadata.name", "operator": "In", "values": [node_name]}
    affinity = spec["affinity"] = copy.deepcopy(spec.get("affinity") or {})
    node_affinity = affinity["nodeAffinity"] = affinity.get("nodeAffinity") or {}
    node_affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
        "nodeSelectorTerms": [{"matchFields": [field_]}]
    }


def tolerations_of(spec: Mapping[str, Any]) -> list[Json]:
    """Return the tolerations of a template together with those of every daemon pod."""
    tolerations: list[Json] = list(spec.get("tolerations") or [])
    wanted = [*_TOLERATED, *([_HOST_NETWORK] if spec.get("hostNetwork") else [])]
    for key, effect in wanted:
        toleration = {"key": key, "operator": "Exists", "effect": effect}
        if toleration not in tolerations:
            tolerations.append(toleration)
    return tolerations


class Placement:
    """Decides whether a daemon set's pod belongs on a node.

    Parameters
    ----------
    daemon_set
        The daemon set.
    """

    def __init__(self, daemon_set: Whole) -> None:
        raw = (daemon_set.spec.get("template") or {}).get("spec") or {}
        spec = from_dict(PodSpec, raw)
        affinity = spec.affinity.node_affinity if spec.affinity else None
        required: NodeSelector | None = (
            affinity.required_during_scheduling_ignored_during_execution if affinity else None
        )
        self._node_name = spec.node_name
        self._labels = spec.node_selector
        self._matcher = None if required is None else compile_node_selector(required)
        self._tolerations = [from_dict(Toleration, each) for each in tolerations_of(raw)]

    def should_run(self, node: Node) -> bool:
        """Whether a pod should be started on a node."""
        return self._fits(node) and not self._repels(node, (NO_SCHEDULE, NO_EXECUTE))

    def may_stay(self, node: Node) -> bool:
        """Whether a running pod may stay on a node."""
        return self._fits(node) and not self._repels(node, (NO_EXECUTE,))

    def _fits(self, node: Node) -> bool:
        if self._node_name and self._node_name != node.name:
            return False
        if not (self._labels or {}).items() <= node.metadata.labels.items():
            return False
        return self._matcher is None or self._matcher.matches_node(node.metadata.labels, node.name)

    def _repels(self, node: Node, effects: tuple[str, ...]) -> bool:
        return find_untolerated(node.spec.taints, self._tolerations, effects) is not None


def node_of(pod: Pod) -> str:
    """Return the node a pod is bound to, or is pinned to by affinity; "" if there is none."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    for term in required.node_selector_terms if required else ():
        for each in term.match_fields:
            if each.key == "metadata.name" and each.operator == "In" and len(each.values) == 1:
                return each.values[0]
    return ""


def by_node(pods: Sequence[Pod]) -> dict[str, list[Pod]]:
    """Return pods by the node they are bound to or pinned to."""
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        found.setdefault(node_of(pod), []).append(pod)
    return found


def place(daemon_set: Whole, nodes: Sequence[Node], pods: Sequence[Pod], now_ns: int) -> Plan:
    """Return the nodes that need a pod and the pods to delete."""
    plan = Plan()
    placement = Placement(daemon_set)
    surge = limits(daemon_set, len(nodes))[0] > 0
    there = by_node(pods)
    known = {node.name for node in nodes}
    for node in nodes:
        here = there.get(node.name, [])
        if not here and placement.should_run(node):
            plan.create.append(node.name)
        elif here and not placement.may_stay(node):
            plan.delete += [pod for pod in here if pod.metadata.deletion_timestamp is None]
        elif here:
            _keep_one(here, plan, surge=surge, now_ns=now_ns)
    # Pods pinned to deleted nodes. The node controller deletes the pods bound to them.
    for name, left in there.items():
        if name not in known:
            plan.delete += [
                pod
                for pod in left
                if not pod.spec.node_name and pod.metadata.deletion_timestamp is None
            ]
    return plan


def _keep_one(here: Sequence[Pod], plan: Plan, *, surge: bool, now_ns: int) -> None:
    """Delete ended pods and surplus pods of a node; a surge allows two pods."""
    live = []
    for pod in here:
        if pod.metadata.deletion_timestamp is not None:
            continue
        if pod.status.phase in ("Failed", "Succeeded"):
            plan.failed.append(pod)
        else:
            live.append(pod)
    if len(live) > (2 if surge else 1):
        plan.delete += deletion_order(live, rank={}, now_ns=now_ns)[: len(live) - 1]


# --- rolling --------------------------------------------------------------------------------------


def limits(daemon_set: Whole, desired: int) -> tuple[int, int]:
    """Return how many nodes may have two pods, and how many may have no available pod."""
    strategy = daemon_set.spec.get("updateStrategy") or {}
    rolling = strategy.get("rollingUpdate") or {}
    if strategy.get("type") == "OnDelete":
        return 0, 0
    surge = scaled(rolling.get("maxSurge"), desired, up=True)
    unavailable = scaled(rolling.get("maxUnavailable"), desired, up=True)
    return surge, unavailable if surge or unavailable else 1


def roll(
    daemon_set: Whole, pods: Sequence[Pod], wanted_nodes: Sequence[str], revision: str, now_ns: int
) -> Plan:
    """Return the next step of replacing pods of old revisions.

    Parameters
    ----------
    wanted_nodes
        Nodes that should have a pod.
    revision
        Hash of the newest template.
    """
    plan = Plan()
    surge, unavailable_most = limits(daemon_set, len(wanted_nodes))
    seconds = min_ready_seconds(daemon_set)
    there = by_node(pods)

    def serves(pod: Pod) -> bool:
        ready = pod.metadata.deletion_timestamp is None
        return ready and is_available(pod, min_ready_seconds=seconds, now_ns=now_ns)

    unavailable = 0
    candidates: list[Pod] = []
    grown = 0
    for name in wanted_nodes:
        here = [pod for pod in there.get(name, []) if pod.metadata.deletion_timestamp is None]
        old = [pod for pod in here if pod.metadata.labels.get(REVISION_LABEL) != revision]
        new = [pod for pod in here if pod not in old]
        if surge:
            grown += _surge(name, old, new, plan, serves)
            continue
        if not any(serves(pod) for pod in here):
            unavailable += 1
            # An unavailable pod may be deleted at once: the number of available pods stays the
            # same.
            plan.delete += old
        else:
            candidates += old
    if surge:
        plan.create = plan.create[: max(0, surge - grown)]
    else:
        plan.delete += candidates[: max(0, unavailable_most - unavailable)]
    return plan


def _surge(name: str, old: list[Pod], new: list[Pod], plan: Plan, serves: Any) -> int:
    """Roll one node with a surge; return 1 if a new pod is starting there."""
    if not old:
        return 0
    if not new:
        if any(serves(pod) for pod in old):
            plan.create.append(name)
        else:
            plan.delete += old
        return 0
    if any(serves(pod) for pod in new):
        plan.delete += old
        return 0
    return 1


# --- the status -----------------------------------------------------------------------------------


def status_due(
    daemon_set: Whole, nodes: Sequence[Node], pods: Sequence[Pod], revision: str, now_ns: int
) -> Json:
    """Return the new status of a daemon set."""
    placement = Placement(daemon_set)
    there = by_node(pods)
    seconds = min_ready_seconds(daemon_set)
    desired = current = misplaced = ready = available = updated = 0
    for node in nodes:
        here = there.get(node.name, [])
        if not placement.should_run(node):
            misplaced += bool(here)
            continue
        desired += 1
        if not here:
            continue
        current += 1
        best = sorted(here, key=lambda pod: pod.metadata.creation_timestamp or "")[0]
        best = next((pod for pod in here if is_ready(pod)), best)
        if is_ready(best):
            ready += 1
            available += is_available(best, min_ready_seconds=seconds, now_ns=now_ns)
        updated += any(pod.metadata.labels.get(REVISION_LABEL) == revision for pod in here)
    return {
        "currentNumberScheduled": current,
        "desiredNumberScheduled": desired,
        "numberMisscheduled": misplaced,
        "numberReady": ready,
        "numberAvailable": available or None,
        "numberUnavailable": desired - available or None,
        "updatedNumberScheduled": updated or None,
        "observedGeneration": daemon_set.metadata.generation,
    }
