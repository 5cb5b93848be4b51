"""Controllers that are left to another program: which names there are, and what they leave out."""

from __future__ import annotations

import pytest

from moorage.api.resources import DEPLOYMENTS, PODS, REPLICA_SETS, SERVICE_ACCOUNTS
from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage_sandbox.controllers import names
from moorage_sandbox.controllers.cluster import parts_without
from moorage_sandbox.controllers.names import NAMES
from moorage_sandbox.testing.builders import node_manifest
from moorage_sandbox.testing.virtual_cluster import VirtualCluster
from moorage_sandbox.testing.virtual_loop import run_virtual
from sandbox.tests.controllers.cluster import every, stored, workload


def _playing(*without: str) -> tuple[bool, bool, bool]:
    """Return whether a Deployment's ReplicaSet, its pods and service accounts are made."""
    clock = ManualClock()
    made: list[bool] = []

    async def main() -> None:
        parts = parts_without(without)
        nodes = [node_manifest("n1")]
        async with VirtualCluster(clock, nodes=nodes, controllers=parts) as cluster:
            await cluster.client.create(
                DEPLOYMENTS, workload("Deployment", replicas=1), namespace="default"
            )
            await aio.sleep(5)
            made.append(bool(every(cluster, REPLICA_SETS)))
            made.append(bool(every(cluster, PODS)))
            made.append(bool(stored(cluster, SERVICE_ACCOUNTS, "default")))

    run_virtual(main(), clock)
    replica_sets, pods, accounts = made
    return replica_sets, pods, accounts


@pytest.mark.parametrize(
    ("without", "made"),
    [
        pytest.param((), (True, True, True), id="every controller works"),
        pytest.param(("deployment-controller",), (False, False, True), id="no Deployments"),
        pytest.param(("replicaset-controller",), (True, False, True), id="no ReplicaSets"),
        pytest.param(("serviceaccount-controller",), (True, True, False), id="no accounts"),
        pytest.param(NAMES, (False, False, False), id="no controller at all"),
    ],
)
def test_a_controller_that_is_left_out_writes_nothing(without, made):
    assert _playing(*without) == made


def test_the_list_has_every_name():
    assert set(NAMES) == {value for name, value in vars(names).items() if name.isupper()} - {NAMES}
