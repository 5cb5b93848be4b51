"""How many of some equal pods get a node, on trial: one after another, as the scheduler does it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from moorage.api.pod import Pod, PodStatus
from moorage.engine.attempt import CycleError
from moorage.engine.cycle import Cycle
from moorage.engine.inquiry import in_question
from moorage.engine.select_node import smallest_name
from moorage.framework.profile import Profile
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from moorage.snapshot.trial import Trial

PLACED_MOST: Final = 32
"""Pods that are placed on trial, at most: with 5000 nodes each takes about 3 ms, and a running
scheduler decides about nothing else meanwhile."""


def number_placed(profile: Profile, snapshot: Snapshot, pods: Sequence[Pod]) -> int:
    """Return how many of some equal pods get a node, one after another.

    Nobody is evicted for them. A trial reserves no devices, so of pods with claims one is tried.
    """
    with snapshot.trial() as trial:
        return place_pods(profile, snapshot, pods, trial)


def place_pods(profile: Profile, snapshot: Snapshot, pods: Sequence[Pod], trial: Trial) -> int:
    """Put equal pods on nodes on trial until one gets none, and return how many got one."""
    if not pods:
        return 0
    most = 1 if has_claims(pods[0]) else PLACED_MOST
    with in_question(profile, pods[0]):
        cycle = Cycle(profile, snapshot, smallest_name)
        for number, pod in enumerate(pods[:most]):
            info = PodInfo(pod)
            row = _chosen_row(cycle, info)
            if row is None:
                return number
            trial.add_pod(info, row)
    return min(len(pods), most)


def _chosen_row(cycle: Cycle, pod: PodInfo) -> int | None:
    """Return the row that a pod gets; None where no row takes it, or a plugin breaks."""
    try:
        search = cycle.search(cycle.begin(pod), shortcut=False)
        rows = search.answers.feasible(search.view, search.filtered)
        if len(rows) <= 1:
            return int(rows[0]) if len(rows) else None
        decision = cycle.select(search, rows, cycle.totals(search, rows))
    except CycleError:
        return None
    return cycle.snapshot.row_of(decision.node_name)


def has_claims(pod: Pod) -> bool:
    """Whether a pod claims devices, which a trial does not reserve."""
    return bool(pod.spec.resource_claims)


def copies_of(pod: Pod, count: int) -> list[Pod]:
    """Return further pods like one, without a node."""
    spec = msgspec.structs.replace(pod.spec, node_name="")
    status = PodStatus(phase="Pending", qos_class=pod.status.qos_class)
    copies = []
    for number in range(1, count + 1):
        name = f"{pod.name}-more-{number}"
        metadata = msgspec.structs.replace(
            pod.metadata, name=name, uid=f"{pod.uid}-more-{number}", deletion_timestamp=None
        )
        copies.append(msgspec.structs.replace(pod, metadata=metadata, spec=spec, status=status))
    return copies
