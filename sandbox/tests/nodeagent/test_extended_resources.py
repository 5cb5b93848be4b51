"""Extended resources of a node, as clients add and remove them in ``status.capacity``."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import from_dict
from moorage.api.node import NodeStatus
from moorage.base import aio
from moorage_sandbox.nodeagent.extended_resources import allocatable_changes, reserved_in
from sandbox.tests.nodeagent.memory_api import MemoryApi
from sandbox.tests.nodeagent.test_agents import play

FOO = "scheduling.k8s.io/foo"


@pytest.mark.parametrize(
    ("capacity", "allocatable", "reserved", "changes"),
    [
        pytest.param({FOO: "3"}, {}, {}, {FOO: "3"}, id="a new resource becomes allocatable"),
        pytest.param({FOO: "3"}, {FOO: "3"}, {}, {}, id="an equal amount is not written"),
        pytest.param({FOO: "1k"}, {FOO: "1000"}, {}, {}, id="amounts are compared as numbers"),
        pytest.param({FOO: "5"}, {FOO: "3"}, {}, {FOO: "5"}, id="a changed amount is taken over"),
        pytest.param({}, {FOO: "3"}, {}, {FOO: None}, id="a removed resource goes"),
        pytest.param({FOO: "5"}, {}, {FOO: 2 * 10**9}, {FOO: "3"}, id="reserved units stay back"),
        pytest.param({FOO: "1"}, {}, {FOO: 2 * 10**9}, {FOO: "0"}, id="no amount is negative"),
        pytest.param(
            {"cpu": "8", "hugepages-2Mi": "1Gi", "kubernetes.io/batch": "1"},
            {"cpu": "64"},
            {},
            {},
            id="native resources are left as they are",
        ),
    ],
)
def test_a_change_of_allocatable_is_derived_from_the_capacity(
    capacity, allocatable, reserved, changes
):
    status = from_dict(NodeStatus, {"capacity": capacity, "allocatable": allocatable})
    assert allocatable_changes(status, reserved) == changes


def test_a_template_reserves_what_its_allocatable_leaves_of_its_capacity():
    status = {
        "capacity": {"cpu": "8", "a.io/x": "4", "a.io/y": "4", "a.io/z": "4"},
        "allocatable": {"cpu": "7", "a.io/x": "3", "a.io/y": "4"},
    }
    assert reserved_in({"metadata": {"name": "n"}, "status": status}) == {"a.io/x": 10**9}


def test_a_resource_in_the_capacity_of_a_node_becomes_allocatable_and_goes_with_it():
    seen: list[Any] = []

    async def scene(api: MemoryApi) -> None:
        for amount in ("3", "5", None):
            api.change("nodes", "", "node-01", {"status": {"capacity": {FOO: amount}}})
            await aio.sleep(1)
            status = api.get("nodes", "node-01", "")["status"]
            seen.append((status["capacity"].get(FOO), status["allocatable"].get(FOO)))
            assert status["allocatable"]["cpu"] == "8"

    play(scene)
    assert seen == [("3", "3"), ("5", "5"), (None, None)]


def test_a_restart_of_the_agents_keeps_the_resource():
    async def add(api: MemoryApi) -> None:
        api.change("nodes", "", "node-01", {"status": {"capacity": {FOO: "3"}}})
        await aio.sleep(1)

    async def wait(_api: MemoryApi) -> None:
        await aio.sleep(600)

    status = play(wait, api=play(add)).get("nodes", "node-01", "")["status"]
    assert (status["capacity"][FOO], status["allocatable"][FOO]) == ("3", "3")
