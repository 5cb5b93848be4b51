"""The world of a known storm: a gang preempts on the one node of a ReplicaSet with a backlog."""

from __future__ import annotations

from moorage.api.coscheduling import GROUP_LABEL
from moorage.nodeshapes.annotations import STOP_SECONDS
from moorage_lab.fault_sim.acts import Create
from moorage_lab.fault_sim.company.manifests import priority_class, template, workload
from moorage_lab.fault_sim.company.world import (
    WAVE_LABEL,
    AnyWorldAct,
    CompanyWorld,
    GroupSize,
    Wave,
)
from moorage_lab.fault_sim.users.groups import labelled
from moorage_sandbox.testing.builders import node_manifest, pod_manifest

COMES_AT = 15.0


def gang_before_backlog(
    members: int, *, backlog: int = 4, grace: int = 0, seed: int = 1, end_seconds: float = 50.0
) -> CompanyWorld:
    """Return a node of 8 cpu full of low pods, a backlog of them, and a gang of high priority."""
    labels = {"app": "gang", WAVE_LABEL: "1", GROUP_LABEL: "gang"}
    low = template("1", terminationGracePeriodSeconds=grace)
    low["metadata"]["annotations"][STOP_SECONDS] = str(grace)
    acts: list[AnyWorldAct] = [
        Create(at=1.0, object=priority_class("high")),
        Create(at=2.0, object=workload("ReplicaSet", "low", 8 + backlog, low)),
        Create(at=COMES_AT, object=labelled("gang", members)),
    ]
    for number in range(members):
        pod = pod_manifest(f"m{number}", cpu="1", labels=labels, priorityClassName="high")
        acts.append(Create(at=COMES_AT, object=pod))
    return CompanyWorld(
        seed=seed,
        features=("group-object", "replica-set"),
        setup="coscheduling",
        nodes=[node_manifest("n1", cpu="8")],
        acts=acts,
        waves=(Wave(number=1, at=COMES_AT),),
        groups=(GroupSize(name="gang", least=members),),
        grace_seconds_most=grace,
        end_seconds=end_seconds,
    )
