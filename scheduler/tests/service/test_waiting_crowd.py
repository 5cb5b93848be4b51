"""A thousand pods that wait at once: others are scheduled meanwhile, and all are let go together.

Pump, cycle, effects and waiting pods together, in virtual time; a binding takes a second.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from moorage.base import aio
from moorage.framework.status import SUCCESS, Code, Status
from moorage.snapshot.pod_info import PodInfo
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.service.build import node, pod
from scheduler.tests.service.test_failure_paths import Attempt

CROWD = 1000


class Crowd(Attempt):
    """A node with room for everybody; a plugin holds the pods whose name begins with ``w``."""

    def __init__(self, hold_at: str = "permit") -> None:
        self.bound: list[str] = []
        self.released = False
        self.most = 0
        super().__init__(nodes=0, permit=self._permit, pre_bind=self._pre_bind, bind=self._bind)
        self.hold_at = hold_at
        self.cache.add_node(node("n1", pods=5000))

    def _held(self, info: PodInfo, point: str) -> bool:
        return self.hold_at == point and info.name.startswith("w")

    def _permit(self, state: Any, info: PodInfo, node_name: str) -> tuple[Status, float]:
        return (Status(Code.WAIT), 60.0) if self._held(info, "permit") else (SUCCESS, 0.0)

    async def _pre_bind(self, state: Any, info: PodInfo, node_name: str) -> Status:
        while self._held(info, "pre_bind") and not self.released:
            await aio.sleep(1)
        return SUCCESS

    async def _bind(self, state: Any, info: PodInfo, node_name: str) -> Status:
        self.most = max(self.most, self.slots.used)
        await aio.sleep(1)
        self.bound.append(info.name)
        self.pods.on_update(info.pod, pod(info.name, version="2", node_name=node_name))
        return SUCCESS

    def let_go(self) -> None:
        self.released = True
        for each in self.core.waiting.undecided_pods():
            self.core.waiting.allow(each.pod.uid, "X")

    def play(self, scenario: Callable[[], Any]) -> None:
        async def main() -> None:
            self.tasks.spawn(self.pump.run(), name="pump")
            await scenario()
            await self.tasks.cancel_all()

        run_virtual(main(), self.clock)
        self.validate()


@pytest.mark.parametrize(
    "hold_at", [pytest.param("permit", id="at Permit"), pytest.param("pre_bind", id="in PreBind")]
)
def test_a_thousand_waiting_pods_do_not_stop_other_pods(hold_at: str) -> None:
    world = Crowd(hold_at)

    async def scenario() -> None:
        for i in range(CROWD):
            world.pods.on_add(pod(f"w{i:04}"))
        await aio.sleep(5)
        assert world.cache.counts().assumed_pods == CROWD
        assert (world.slots.used, world.bound) == (0, [])
        world.pods.on_add(pod("ordinary"))
        await aio.sleep(2)
        assert world.bound == ["ordinary"]
        world.let_go()
        await aio.sleep(3)
        assert sorted(world.bound[1:]) == [f"w{i:04}" for i in range(CROWD)]

    world.play(scenario)
    assert world.cache.counts().assumed_pods == 0
    assert world.most > 1


def test_deciding_waits_while_a_thousand_allowed_pods_are_bound() -> None:
    world = Crowd()

    async def scenario() -> None:
        for i in range(CROWD):
            world.pods.on_add(pod(f"w{i:04}"))
        await aio.sleep(5)
        world.let_go()
        await aio.sleep(0.5)
        assert world.slots.used == CROWD
        world.pods.on_add(pod("ordinary"))
        await aio.sleep(0.3)
        assert not world.cache.is_assumed("uid-ordinary")
        await aio.sleep(0.5)
        assert len(world.bound) == CROWD
        assert world.cache.is_assumed("uid-ordinary")

    world.play(scenario)


def test_a_thousand_pods_whose_wait_timed_out_go_back_and_free_their_nodes() -> None:
    world = Crowd()

    async def scenario() -> None:
        for i in range(CROWD):
            world.pods.on_add(pod(f"w{i:04}"))
        await aio.sleep(61)
        assert (world.cache.counts().pods, len(world.core.waiting)) == (0, 0)
        assert len(world.queue.pending().unschedulable) == CROWD

    world.play(scenario)
