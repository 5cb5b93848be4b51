"""Quotas on many rows at once decide as pod by pod: also with budgets, and pods that leave."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from moorage.api.codec import from_dict
from moorage.api.policy import PodDisruptionBudget
from moorage.base.clock import NS_PER_SECOND
from moorage.engine.cycle import Cycle
from moorage.engine.select_node import smallest_name
from moorage.plugins.preemption.dry_runs import DryRuns
from moorage.plugins.quotas import victim_columns
from moorage.plugins.quotas.victims import CapacityVictims
from moorage.snapshot.pod_info import PodInfo
from moorage.snapshot.snapshot import Snapshot
from scheduler.tests.engine.builders import told
from scheduler.tests.plugins.quotas.builders import profile_with
from scheduler.tests.plugins.quotas.reference import Quota, Resident, Room
from scheduler.tests.plugins.quotas.test_against_reference import (
    DEVICE,
    NOW,
    built,
    handle_of,
    named,
    pod_of,
    preemptors,
    quotas,
    rooms,
)


def budget(namespace: str) -> PodDisruptionBudget:
    return from_dict(
        PodDisruptionBudget,
        {
            "metadata": {"name": "budget", "namespace": namespace},
            "spec": {"selector": {"matchLabels": {"app": "a"}}},
            "status": {"disruptionsAllowed": 0},
        },
    )


def borrower() -> Resident:
    return Resident("", "b", 0, {"cpu": 1000}, NOW - NS_PER_SECOND)


def change(snapshot: Snapshot, what: str, row: int) -> None:
    """Let the first pod of a row leave, be resized or have a label."""
    if row >= snapshot.num_nodes or not snapshot.table.pods_by_row[row]:
        return
    pod = next(iter(snapshot.table.pods_by_row[row].values())).pod
    metadata, status = pod.metadata, pod.status
    if what == "leaves":
        metadata = msgspec.structs.replace(metadata, deletion_timestamp="2026-01-01T00:00:00Z")
    elif what == "label":
        metadata = msgspec.structs.replace(metadata, labels={"app": "a"})
    else:
        resized: Any = [{"name": "main", "resources": {"requests": {"cpu": "1500m"}}}]
        fields = type(status), {"containerStatuses": resized, "startTime": status.start_time}
        status = from_dict(*fields)
    changed = msgspec.structs.replace(pod, metadata=metadata, status=status)
    snapshot.table.update_pod(changed, snapshot.names[row])


@settings(
    max_examples=150,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    nodes=st.lists(rooms, min_size=1, max_size=5).map(named),
    bounded=quotas,
    preemptor=preemptors,
    changes=st.lists(
        st.tuples(st.sampled_from(["leaves", "label", "resized"]), st.integers(0, 4)), max_size=3
    ),
    protected=st.sampled_from(["", "a", "b", "free"]),
    cells=st.sampled_from([1, 4, 1 << 20]),
)
def test_decisions_are_the_same_on_many_rows_at_once_and_pod_by_pod(
    nodes: list[Room],
    bounded: dict[str, Quota],
    preemptor: Resident,
    changes: list[tuple[str, int]],
    protected: str,
    cells: int,
) -> None:
    snapshot = built(nodes, bounded)
    for what, row in changes:
        change(snapshot, what, row)
    if protected:
        snapshot.listers.pod_disruption_budgets.put(budget(protected))
    together = decided_both_ways(snapshot, preemptor, cells=cells)
    event("preempts" if together["victims"] else "does not")


def decided_both_ways(
    snapshot: Snapshot, preemptor: Resident, *, cells: int = 1 << 20
) -> dict[str, object]:
    """Return the decision on many rows at once, which equals the one pod by pod."""
    info = PodInfo(pod_of(preemptor))

    def decide() -> dict[str, object]:
        profile = profile_with("CapacityScheduling", handle_of(snapshot))
        return told(Cycle(profile, snapshot, smallest_name).decide(info))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(victim_columns, "_CELLS_MOST", cells)
        together = decide()
        patch.setattr(CapacityVictims, "in_columns", None)
        assert decide() == together
    return together


def test_pods_that_request_nothing_give_nothing_back() -> None:

    def idle() -> Resident:
        return Resident("", "a", 0, {}, NOW - NS_PER_SECOND)

    nodes = named([Room("", {"cpu": 2000, DEVICE: 0}, [idle()]) for _ in range(3)])
    snapshot = built(nodes, {"a": Quota({"cpu": 0}, {"cpu": 500})})
    decision = decided_both_ways(snapshot, Resident("preemptor", "a", 9, {"cpu": 1000}, NOW))
    assert not decision["victims"]
    assert "PostFilter" not in str(decision["message"])


def test_rows_of_borrowers_are_tried_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only a row with a pod that leaves is tried alone."""
    offers = {"cpu": 2000, DEVICE: 0}
    nodes = named([Room("", offers, [borrower(), borrower()]) for _ in range(12)])
    snapshot = built(nodes, {"a": Quota({"cpu": 12000}, None), "b": Quota({"cpu": 12000}, None)})
    change(snapshot, "leaves", 7)
    alone: list[int] = []
    one_by_one = DryRuns._one_by_one

    def noted(self: DryRuns, rows: Any) -> None:
        alone.extend(rows.tolist())
        one_by_one(self, rows)

    monkeypatch.setattr(DryRuns, "_one_by_one", noted)
    preemptor = PodInfo(pod_of(Resident("preemptor", "a", 0, {"cpu": 1000}, NOW)))
    profile = profile_with("CapacityScheduling", handle_of(snapshot))
    decision = Cycle(profile, snapshot, smallest_name).decide(preemptor)
    assert len(decision.victims) == 1
    assert alone == [7]
