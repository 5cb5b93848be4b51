"""Pods that share a claim nobody has allocated or bound yet evict on one node.

The claim goes to the node of the pod that is placed first, so evictions elsewhere are in vain.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from moorage_lab.fault_sim.users.stored import storage_class
from moorage_sandbox.testing.builders import Manifest, node_manifest
from tests.scenarios.company import Company, made, play, replicas
from tests.scenarios.test_groups_preempt import LATE_SECONDS
from tests.scenarios.test_nominees import (
    DEVICES,
    LOCAL,
    device_claim,
    device_slice,
    local_claim,
    local_volume,
    with_device,
    with_volume,
)

NODES, PODS_OF_CLAIM = ("n1", "n2", "n3"), 3


async def one_device(company: Company) -> None:
    await company.create(DEVICES, *map(device_slice, NODES), device_claim("c"))


async def one_volume(company: Company) -> None:
    await company.create(LOCAL, *map(local_volume, NODES), local_claim("c"))


async def volume_to_make(company: Company) -> None:
    await company.create(storage_class("local"), local_claim("c"))


@pytest.mark.parametrize(
    ("prepare", "using"),
    [
        pytest.param(one_device, with_device, id="a claim of a device"),
        pytest.param(one_volume, with_volume, id="a claim of a volume"),
        pytest.param(volume_to_make, with_volume, id="a claim whose volume is made"),
    ],
)
@pytest.mark.parametrize("stops", [0, 5])
@pytest.mark.parametrize("cpu", [1, 3])
def test_pods_that_share_a_claim_evict_on_one_node(
    prepare: Callable[[Company], Awaitable[None]],
    using: Callable[[Manifest, str], Manifest],
    stops: float,
    cpu: int,
) -> None:
    """The pods with the claim follow one another, also where a node has room for one of them."""
    if cpu > 1 and prepare is volume_to_make:
        pytest.skip("once it is made, every node reaches this volume")
    fit = PODS_OF_CLAIM if cpu == 1 else 1

    async def scenario(company: Company) -> None:
        await prepare(company)
        await company.create(replicas(20, made("t", stops=stops, cpu="1")))
        await company.run("t-", 12)
        for index in range(PODS_OF_CLAIM):
            await company.create(using(made(f"h{index}", high=True, cpu=str(cpu)), "c"))
        await company.run("h", fit, seconds=stops + LATE_SECONDS)
        await company.sleep(20)
        assert len(company.evicted) == fit * cpu

    play(scenario, nodes=[node_manifest(name, cpu="4") for name in NODES])
