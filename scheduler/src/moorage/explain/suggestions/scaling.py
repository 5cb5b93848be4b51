"""Suggestions that scale another workload down, so that nobody makes the pod again that leaves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import msgspec

from moorage.api.meta import OwnerReference
from moorage.api.pod import DELETION_COST
from moorage.api.workloads import ReplicaSet, StatefulSet
from moorage.explain.answer import ObjectChange, Suggestion
from moorage.explain.suggestions.leaving import (
    SEARCHED_MOST,
    lacking_least,
    leaving_helps,
    pods_to_evict,
)
from moorage.explain.suggestions.ranked import SCALE, RankedSuggestion
from moorage.explain.trying import Trying
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot

_FIRST_TO_GO: Final = "-2147483648"
"""The lowest deletion cost."""


class _Workload(msgspec.Struct, frozen=True):
    """A workload that makes a pod.

    Parameters
    ----------
    kind, name, replicas
        The workload.
    chosen
        Whether one may choose which of its pods leaves.
    deployment
        The uid of the Deployment; "" for others.
    """

    kind: str
    name: str
    replicas: int
    chosen: bool
    deployment: str = ""


def smaller_workloads(trying: Trying) -> Iterator[RankedSuggestion]:
    """Yield a workload that is scaled down by the pod whose leaving is enough.

    The controller of a ReplicaSet deletes the pod with the lowest deletion cost first, once all
    pods of the set have a node. That of a StatefulSet deletes the pod with the highest ordinal.
    An autoscaler may scale the workload up again.
    """
    inquiry = trying.inquiry
    if inquiry.pre_filter.status.rejected:
        return
    snapshot = inquiry.snapshot
    workloads: dict[PodInfo, _Workload] = {}
    placed: list[tuple[int, PodInfo]] = []
    for row, pod in pods_to_evict(inquiry, lacking_least(trying)[:SEARCHED_MOST]):
        workload = _workload_of(snapshot, pod)
        if workload is not None:
            workloads[pod] = workload
            placed.append((row, pod))
    if placed:
        counts, sets = _placed_pods(snapshot), _sets_in_use(snapshot)
        placed = [
            (row, pod)
            for row, pod in placed
            if counts[_owner_uid(pod)] == workloads[pod].replicas
            and sets[workloads[pod].deployment] <= 1
        ]
    helping = next(leaving_helps(trying, placed), None)
    if helping is not None:
        row, pod = helping
        yield RankedSuggestion(SCALE, _suggestion(workloads[pod], pod, snapshot.names[row]))


def _workload_of(snapshot: Snapshot, pod: PodInfo) -> _Workload | None:
    """Return what to scale so that a pod leaves; None where the pod may stay."""
    listers, controller = snapshot.listers, pod.pod.metadata.controller
    if controller is None:
        return None
    match controller.kind:
        case "ReplicaSet":
            owner: ReplicaSet | StatefulSet | None = listers.replica_sets.get(
                controller.name, pod.namespace
            )
        case "StatefulSet":
            owner = listers.stateful_sets.get(controller.name, pod.namespace)
        case _:
            return None
    if owner is None or owner.metadata.uid != controller.uid:
        return None
    replicas = 1 if owner.spec.replicas is None else owner.spec.replicas
    if isinstance(owner, StatefulSet):
        last = pod.name == f"{owner.name}-{replicas - 1}"
        return _Workload("StatefulSet", owner.name, replicas, chosen=False) if last else None
    above: OwnerReference | None = owner.metadata.controller
    if above is None:
        return _Workload("ReplicaSet", owner.name, replicas, chosen=True)
    if above.kind != "Deployment":
        return None
    return _Workload("Deployment", above.name, replicas, chosen=True, deployment=above.uid)


def _placed_pods(snapshot: Snapshot) -> Counter[str]:
    """Return how many pods of each controller have nodes, by its uid."""
    rows = range(snapshot.num_nodes)
    return Counter(_owner_uid(pod) for row in rows for pod in snapshot.pods(row))


def _sets_in_use(snapshot: Snapshot) -> Counter[str]:
    """Return the number of ReplicaSets with pods, by their Deployment's uid: two in a rollout."""
    uids: Counter[str] = Counter()
    for each in snapshot.listers.replica_sets.all():
        if each.spec.replicas != 0 and each.metadata.controller is not None:
            uids[each.metadata.controller.uid] += 1
    return uids


def _owner_uid(pod: PodInfo) -> str:
    controller = pod.pod.metadata.controller
    return "" if controller is None else controller.uid


def _suggestion(workload: _Workload, pod: PodInfo, node: str) -> Suggestion:
    kind, namespace, fewer = workload.kind.lower(), pod.namespace, workload.replicas - 1
    scale = ObjectChange(
        api_version="apps/v1",
        kind=workload.kind,
        namespace=namespace,
        name=workload.name,
        patch={"spec": {"replicas": fewer}},
    )
    cost = ObjectChange(
        api_version="v1",
        kind="Pod",
        namespace=namespace,
        name=pod.name,
        patch={"metadata": {"annotations": {DELETION_COST: _FIRST_TO_GO}}},
    )
    commands = [f"kubectl -n {namespace} scale {kind} {workload.name} --replicas={fewer}"]
    if workload.chosen:
        commands.insert(
            0,
            f"kubectl -n {namespace} annotate pod {pod.name} {DELETION_COST}={_FIRST_TO_GO} "
            "--overwrite",
        )
    return Suggestion(
        kind="scale",
        text=f"scale {kind} {namespace}/{workload.name} from {workload.replicas} to {fewer}: "
        f"pod {pod.name} (priority {pod.priority}) leaves {node}",
        nodes=1,
        node=node,
        evicted=(pod.key,),
        changes=(cost, scale) if workload.chosen else (scale,),
        command=" && ".join(commands),
    )
