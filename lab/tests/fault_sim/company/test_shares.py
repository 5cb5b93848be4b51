"""Members at Permit that reclaim their quota's minimum while victims of other pods still count."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.coscheduling import MIN_AVAILABLE_LABEL, NAME_LABEL
from moorage.nodeshapes.annotations import STOP_SECONDS
from moorage_lab.fault_sim.acts import Create
from moorage_lab.fault_sim.company.manifests import priority_class, template, workload
from moorage_lab.fault_sim.company.outcomes import evicted_uids
from moorage_lab.fault_sim.company.play import CompanyRun, play
from moorage_lab.fault_sim.company.totals import excesses
from moorage_lab.fault_sim.company.world import (
    WAVE_LABEL,
    AnyWorldAct,
    CompanyWorld,
    GroupSize,
    Wave,
)
from moorage_lab.fault_sim.users.plot import HOST
from moorage_sandbox.testing.builders import Manifest, node_manifest, pod_manifest
from scheduler.tests.plugins.quotas.builders import quota_manifest

WAVE_AT = 10.0
NODES = 3
NODE_CPU = 4
MEMBERS = 5


def low_pods(name: str, count: int, *, stop: float, apart: bool = False) -> Manifest:
    """Return a ReplicaSet of pods of one cpu that stop after some seconds."""
    more: dict[str, Any] = {"terminationGracePeriodSeconds": 30}
    if apart:
        term = {"labelSelector": {"matchLabels": {"app": name}}, "topologyKey": HOST}
        required = "requiredDuringSchedulingIgnoredDuringExecution"
        more["affinity"] = {"podAntiAffinity": {required: [term]}}
    made = template("1", **more)
    made["metadata"]["annotations"][STOP_SECONDS] = str(stop)
    return workload("ReplicaSet", name, count, made)


def comer(name: str, labels: dict[str, str]) -> Manifest:
    """Return a pod of two cpus of the namespace that has the minimum."""
    return pod_manifest(
        name,
        namespace="owner",
        cpu="2",
        labels={WAVE_LABEL: "1", **labels},
        priorityClassName="high",
    )


def share_world(*low: Manifest, single: bool, seed: int) -> CompanyWorld:
    """Return low pods on three nodes, and a group of five whose namespace may have it all."""
    share = {"cpu": str(NODES * NODE_CPU), "memory": "64Gi"}
    group = {"app": "gang", NAME_LABEL: "gang", MIN_AVAILABLE_LABEL: str(MEMBERS)}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "owner"}}
    comers = [comer(f"gang-{number}", group) for number in range(MEMBERS)]
    comers += [comer("single", {"app": "single"})] * single
    acts: list[AnyWorldAct] = [
        Create(at=1.0, object=priority_class("high")),
        Create(at=1.0, object=namespace),
        Create(at=1.2, object=quota_manifest("default", {"memory": "64Gi"})),
        Create(at=1.2, object=quota_manifest("owner", share)),
        *(Create(at=2.0, object=each) for each in low),
        *(Create(at=WAVE_AT, object=each) for each in comers),
    ]
    return CompanyWorld(
        seed=seed,
        features=("elastic-quota", "group-labels", "permit", "replica-set"),
        setup="coscheduling+elastic-quotas+permit",
        nodes=[node_manifest(f"n{number}", cpu=str(NODE_CPU)) for number in range(1, NODES + 1)],
        acts=acts,
        waves=(Wave(number=1, at=WAVE_AT),),
        groups=(GroupSize(name="gang", least=MEMBERS),),
        grace_seconds_most=5,
        end_seconds=WAVE_AT + 40.0,
    )


def outcome(run: CompanyRun) -> tuple[int, list[str]]:
    """Return the number of evicted pods, and what is wrong with the totals."""
    return len(evicted_uids(run)), [each.text for each in excesses(run)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("stop", [0.0, 5.0])
def test_a_group_is_not_rejected_for_a_share_that_victims_of_another_pod_give_back(
    stop: float, seed: int
) -> None:
    """Five members and a single pod need the room of all three low pods, one on each node."""
    low = low_pods("low", 8, stop=stop, apart=True)
    assert outcome(play(share_world(low, single=True, seed=seed))) == (3, [])


@pytest.mark.parametrize("seed", range(4))
def test_members_whose_victims_stop_at_different_times_evict_for_ten_cpus(seed: int) -> None:
    quick, slow = low_pods("quick", 6, stop=0.5), low_pods("slow", 6, stop=3.0)
    assert outcome(play(share_world(quick, slow, single=False, seed=seed))) == (10, [])
