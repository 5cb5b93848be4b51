"""Members of a group that share a claim are placed together, also while one waits at Permit.

A claim is allocated or bound in the scheduler's memory first. It is written once the whole group
has nodes, so each member has to count on what another member of its group was given.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from moorage_lab.fault_sim.users.stored import storage_class
from moorage_sandbox.testing.builders import Manifest, node_manifest
from tests.scenarios.company import Company, made, play, replicas
from tests.scenarios.test_groups_preempt import FORMS, LATE_SECONDS, Form
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

MEMBERS = 3


async def one_device(company: Company) -> None:
    await company.create(DEVICES, device_slice("n1"), device_claim("c"))


async def one_volume(company: Company) -> None:
    await company.create(LOCAL, local_volume("n1"), local_claim("c"))


async def volume_to_make(company: Company) -> None:
    await company.create(storage_class("local"), local_claim("c"))


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    ("prepare", "using"),
    [
        pytest.param(one_device, with_device, id="a claim of a device"),
        pytest.param(one_volume, with_volume, id="a claim of a volume"),
        pytest.param(volume_to_make, with_volume, id="a claim whose volume is made"),
    ],
)
@pytest.mark.parametrize("stops", [0, 5])
def test_a_group_that_shares_a_claim_evicts_once_and_runs(
    form: Form,
    prepare: Callable[[Company], Awaitable[None]],
    using: Callable[[Manifest, str], Manifest],
    stops: float,
) -> None:
    async def scenario(company: Company) -> None:
        await prepare(company)
        await company.create(replicas(12, made("t", stops=stops, cpu="1")))
        await company.run("t-", 8)

        def use(pod: Manifest) -> None:
            using(pod, "c")

        await form.create(company, MEMBERS, change=use)
        await company.run("g", MEMBERS, seconds=stops + LATE_SECONDS)
        await company.sleep(20)
        assert len(company.evicted) == MEMBERS

    play(scenario, nodes=[node_manifest("n1", cpu="8")], config=form.config())
