"""Decides the next step of a stateful set from its pods; no I/O.

Place in the flow: `moorage_sandbox.controllers.stateful_set` asks here and carries out the plan.
OrderedReady creates pods from the lowest ordinal on, each after its predecessor is available, and
deletes pods from the highest ordinal on. Parallel creates and deletes all pods at once.

Rules: kubernetes v1.36 pkg/controller/statefulset/{stateful_set_control,stateful_set_utils}.go.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from moorage.api.pod import Pod
from moorage.api.resources import STATEFUL_SETS
from moorage.workloads.objects import Json, Whole, owner_reference
from moorage.workloads.pods import (
    is_available,
    is_finished,
    is_ready,
    pod_from_template,
    scaled,
)
from moorage.workloads.replicas import min_ready_seconds, wanted
from moorage.workloads.revisions import History, Revision

REVISION_LABEL: Final = "controller-revision-hash"
_POD_NAME: Final = "statefulset.kubernetes.io/pod-name"
_POD_INDEX: Final = "apps.kubernetes.io/pod-index"


@dataclass(slots=True)
class Plan:
    """The next writes, claims first.

    Parameters
    ----------
    claims
        Name of a pod -> the claims that it needs, to create if they do not exist. A pod whose claim
        cannot be created is not created either.
    create
        Pods to create.
    delete
        Pods to delete.
    """

    claims: dict[str, list[Json]] = field(default_factory=dict)
    create: list[Json] = field(default_factory=list)
    delete: list[Pod] = field(default_factory=list)


def ordinal_of(stateful_set: Whole, name: str) -> int | None:
    """Return the ordinal in the name of a pod of this set; None for other names."""
    prefix, _, number = name.rpartition("-")
    if prefix != stateful_set.name or not number.isdecimal() or str(int(number)) != number:
        return None
    return int(number)


def ordinals(stateful_set: Whole) -> range:
    """Return the ordinals a set wants."""
    start = int((stateful_set.spec.get("ordinals") or {}).get("start") or 0)
    return range(start, start + wanted(stateful_set))


def plan(stateful_set: Whole, pods: Mapping[int, Pod], history: History, now_ns: int) -> Plan:
    """Return the next writes for a set.

    Parameters
    ----------
    pods
        The pods of the set by ordinal.
    """
    return _Planner(stateful_set, pods, history, now_ns).plan()


class _Planner:
    def __init__(
        self, stateful_set: Whole, pods: Mapping[int, Pod], history: History, now_ns: int
    ) -> None:
        self._set = stateful_set
        self._pods = pods
        self._history = history
        self._now_ns = now_ns
        self._in_order = stateful_set.spec.get("podManagementPolicy") != "Parallel"
        self._plan = Plan()

    def plan(self) -> Plan:
        wanted_now = ordinals(self._set)
        for ordinal in wanted_now:
            if not self._settle(ordinal) and self._in_order:
                return self._plan
        condemned = sorted((each for each in self._pods if each not in wanted_now), reverse=True)
        unhealthy = [each for each in (*wanted_now, *condemned[::-1]) if not self._healthy(each)]
        for ordinal in condemned:
            if not self._condemn(ordinal, first_unhealthy=unhealthy[:1]):
                return self._plan
        if (self._set.spec.get("updateStrategy") or {}).get("type") != "OnDelete":
            self._roll(wanted_now)
        return self._plan

    def _settle(self, ordinal: int) -> bool:
        """Plan the next write for a wanted pod; return whether the pod is available."""
        pod = self._pods.get(ordinal)
        if pod is None:
            self._create(ordinal)
            return False
        if is_finished(pod) and pod.metadata.deletion_timestamp is None:
            self._plan.delete.append(pod)
            return False
        if pod.status.phase == "Pending":
            self._plan.claims[pod.name] = claims_of(self._set, ordinal)
        return self._healthy(ordinal)

    def _create(self, ordinal: int) -> None:
        strategy = self._set.spec.get("updateStrategy") or {}
        partition = int((strategy.get("rollingUpdate") or {}).get("partition") or 0)
        kept = strategy.get("type") != "OnDelete" and (
            ordinal < ordinals(self._set).start + partition
        )
        name = str(self._set.status.get("currentRevision") or "")
        revision = self._history.revision_named(name) if kept else self._history.update
        self._plan.claims[f"{self._set.name}-{ordinal}"] = claims_of(self._set, ordinal)
        self._plan.create.append(pod_of(self._set, ordinal, revision))

    def _condemn(self, ordinal: int, *, first_unhealthy: list[int]) -> bool:
        """Delete a surplus pod; return whether the next surplus pod may be deleted, too."""
        pod = self._pods[ordinal]
        if pod.metadata.deletion_timestamp is not None:
            return not self._in_order
        if self._in_order and not self._healthy(ordinal) and first_unhealthy != [ordinal]:
            return False
        self._plan.delete.append(pod)
        return not self._in_order

    def _roll(self, wanted_now: range) -> None:
        """Delete pods of old revisions from the highest ordinal on, a few at a time."""
        rolling = (self._set.spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
        partition = int(rolling.get("partition") or 0)
        most = scaled(rolling.get("maxUnavailable", 1), len(wanted_now), up=True)
        budget = max(1, most)
        for ordinal in reversed(wanted_now[partition:]):
            pod = self._pods.get(ordinal)
            stale = pod is not None and revision_of(pod) != self._history.update.name
            if pod is not None and stale and pod.metadata.deletion_timestamp is None:
                if pod not in self._plan.delete:
                    self._plan.delete.append(pod)
                budget -= 1
            elif not self._healthy(ordinal):
                budget -= 1
            if budget <= 0:
                return

    def _healthy(self, ordinal: int) -> bool:
        pod = self._pods.get(ordinal)
        return pod is not None and is_healthy(self._set, pod, self._now_ns)


def is_healthy(stateful_set: Whole, pod: Pod, now_ns: int) -> bool:
    """Whether a pod runs, has been ready long enough, and is not being deleted."""
    seconds = min_ready_seconds(stateful_set)
    return (
        pod.status.phase == "Running"
        and pod.metadata.deletion_timestamp is None
        and is_available(pod, min_ready_seconds=seconds, now_ns=now_ns)
    )


def revision_of(pod: Pod) -> str:
    """Return the name of the revision a pod was made from."""
    return pod.metadata.labels.get(REVISION_LABEL, "")


# --- bodies ---------------------------------------------------------------------------------------


def claim_name(stateful_set: Whole, template: Mapping[str, Json], ordinal: int) -> str:
    """Return the name of a pod's claim for one of the set's claim templates."""
    return f"{template['metadata']['name']}-{stateful_set.name}-{ordinal}"


def claims_of(stateful_set: Whole, ordinal: int) -> list[Json]:
    """Return the claims of a pod."""
    labels = (stateful_set.spec.get("selector") or {}).get("matchLabels") or {}
    claims = []
    for template in stateful_set.spec.get("volumeClaimTemplates") or []:
        metadata = copy.deepcopy(template["metadata"])
        metadata["name"] = claim_name(stateful_set, template, ordinal)
        metadata["namespace"] = stateful_set.namespace
        metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
        claims.append(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {name: value for name, value in metadata.items() if value is not None},
                "spec": copy.deepcopy(template["spec"]),
            }
        )
    return claims


def pod_of(stateful_set: Whole, ordinal: int, revision: Revision) -> Json:
    """Return the pod of an ordinal, made from the template of a revision."""
    name = f"{stateful_set.name}-{ordinal}"
    pod = pod_from_template(
        revision.template,
        namespace=stateful_set.namespace,
        owner=owner_reference(stateful_set, STATEFUL_SETS),
        prefix=f"{stateful_set.name}-",
    )
    metadata, spec = pod["metadata"], pod["spec"]
    metadata["name"] = name
    labels = metadata.setdefault("labels", {})
    labels |= {_POD_NAME: name, _POD_INDEX: str(ordinal), REVISION_LABEL: revision.name}
    spec["hostname"] = name
    spec["subdomain"] = stateful_set.spec.get("serviceName") or ""
    templates = stateful_set.spec.get("volumeClaimTemplates") or []
    mine = [
        {
            "name": each["metadata"]["name"],
            "persistentVolumeClaim": {"claimName": claim_name(stateful_set, each, ordinal)},
        }
        for each in templates
    ]
    names = {each["name"] for each in mine}
    others = [each for each in spec.get("volumes") or [] if each["name"] not in names]
    if mine or others:
        spec["volumes"] = [*mine, *others]
    return pod


# --- the status -----------------------------------------------------------------------------------


def status_due(stateful_set: Whole, pods: Sequence[Pod], history: History, now_ns: int) -> Json:
    """Return the new status of a set with these pods."""
    update = history.update.name
    current = history.revision_named(str(stateful_set.status.get("currentRevision") or "")).name
    created = [pod for pod in pods if pod.metadata.deletion_timestamp is None]
    ready = [pod for pod in pods if pod.status.phase == "Running" and is_ready(pod)]
    updated = sum(revision_of(pod) == update for pod in created)
    same = sum(revision_of(pod) == current for pod in created)
    replicas = wanted(stateful_set)
    if len(pods) == len(ready) == updated == replicas:
        # The roll-out is over: the newest revision is the current one.
        current, same = update, updated
    seconds = min_ready_seconds(stateful_set)
    available = sum(is_available(p, min_ready_seconds=seconds, now_ns=now_ns) for p in ready)
    return {
        "replicas": len(pods),
        "readyReplicas": len(ready) or None,
        "availableReplicas": available,
        "currentReplicas": same or None,
        "updatedReplicas": updated or None,
        "currentRevision": current,
        "updateRevision": update,
        "observedGeneration": stateful_set.metadata.generation,
        "collisionCount": int(stateful_set.status.get("collisionCount") or 0),
    }
