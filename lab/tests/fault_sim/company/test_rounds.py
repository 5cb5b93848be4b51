"""Rounds of single preemptors before a Deployment: each evicts one pod, by one deletion."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from moorage.api.resources import NODES
from moorage.nodeshapes.annotations import STOP_SECONDS
from moorage_lab.fault_sim.acts import Create, Delete
from moorage_lab.fault_sim.company.manifests import priority_class, template, workload
from moorage_lab.fault_sim.company.outcomes import evicted_uids
from moorage_lab.fault_sim.company.play import play
from moorage_lab.fault_sim.company.totals import totals
from moorage_lab.fault_sim.company.world import AnyWorldAct, CompanyWorld
from moorage_lab.fault_sim.history import name_of
from moorage_sandbox.testing.builders import node_manifest, pod_manifest

ROUNDS = 8
COMERS = 16
EACH_SECONDS = 40.0


def rounds(*, grace: float, seed: int) -> CompanyWorld:
    """Return a world in which sixteen pods come and go eight times, before a Deployment."""
    made = template("1", terminationGracePeriodSeconds=30)
    made["metadata"]["annotations"][STOP_SECONDS] = str(grace)
    acts: list[AnyWorldAct] = [
        Create(at=1.0, object=priority_class("high")),
        Create(at=2.0, object=workload("Deployment", "low", 24, made)),
    ]
    for number in range(ROUNDS):
        at = 10.0 + EACH_SECONDS * number
        for index in range(COMERS):
            name = f"high-{number}-{index}"
            pod = pod_manifest(
                name, cpu="1", priorityClassName="high", terminationGracePeriodSeconds=0
            )
            acts.append(Create(at=at, object=pod))
            acts.append(Delete(at=at + EACH_SECONDS / 2, kind="Pod", name=name))
    acts.sort(key=lambda act: act.at)
    return CompanyWorld(
        seed=seed,
        features=("deployment", "single-pods"),
        setup="default",
        nodes=[node_manifest(f"n{number}", cpu="4", memory="64Gi") for number in range(1, 5)],
        acts=acts,
        grace_seconds_most=30,
        end_seconds=10.0 + EACH_SECONDS * ROUNDS + 30.0,
    )


@pytest.mark.parametrize(
    ("grace", "seed"),
    [
        (0, 1),
        pytest.param(1, 2, marks=pytest.mark.slow),
        pytest.param(5, 1, marks=pytest.mark.slow),
    ],
)
def test_each_preemptor_of_each_round_evicts_one_pod(grace: float, seed: int) -> None:
    run = play(rounds(grace=grace, seed=seed))
    assert len(evicted_uids(run)) == ROUNDS * COMERS
    (deletions,) = [each for each in totals(run) if each.rule == "deleted-twice"]
    assert deletions.amount == ROUNDS * COMERS


@pytest.mark.parametrize("seed", [1, 2])
def test_a_node_that_an_autoscaler_adds_costs_no_further_eviction(seed: int) -> None:
    """The second node comes while the victims stop, so preemptors may go there after all."""
    world = rounds(grace=8, seed=seed)
    first = [act for act in world.acts if act.at < 10.0 + EACH_SECONDS / 2]
    run = play(replace(world, acts=first, autoscaled_most=2, end_seconds=60.0))
    comings = [
        run.moment_of(change.version)
        for change in run.store.shelf(NODES.qualified).log.since(0, 10**6) or ()
        if change.type == "ADDED" and name_of(change.record.decode()).startswith("auto")
    ]
    assert 10.0 < max(comings) < 18.0
    assert len(evicted_uids(run)) == COMERS
