"""Random walks through everything that can befall pods that wait: nothing is lost or left over.

Pods are held at Permit, in PreBind or not at all; they are allowed, rejected, preempted, deleted,
stopped, and bound by somebody else, at any moment of virtual time, while some bindings fail.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.base import aio
from moorage.base.rng import Streams
from moorage.framework.status import SUCCESS, Code, Status, error
from moorage.service.binding.waiting import CallOff
from moorage.snapshot.pod_info import PodInfo
from moorage_sandbox.testing.virtual_loop import run_virtual
from scheduler.tests.service.build import node, pod
from scheduler.tests.service.test_failure_paths import Attempt

STEPS = 400


class Walk(Attempt):
    """A node, a pump, and a watch that tells at once what was done through the API."""

    def __init__(self, seed: int) -> None:
        super().__init__(nodes=0, permit=self._permit, pre_bind=self._pre_bind, bind=self._bind)
        self.random = Streams(seed).stream("walk")
        self.calm = False
        self.cache.add_node(node("n1", pods=5000))
        self.made = 0

    # --- the plugin -----------------------------------------------------------------------------

    def _permit(self, state: Any, info: PodInfo, node_name: str) -> tuple[Status, float]:
        if self.calm or self.random.random() < 0.4:
            return SUCCESS, 0.0
        return Status(Code.WAIT), 8 * self.random.random()

    async def _pre_bind(self, state: Any, info: PodInfo, node_name: str) -> Status:
        if not self.calm:
            await aio.sleep(2 * self.random.random())
        return SUCCESS

    async def _bind(self, state: Any, info: PodInfo, node_name: str) -> Status:
        await aio.sleep(0.5)
        shown = self.store.get(*info.pod.key)
        if shown is None or shown.spec.node_name or shown.metadata.deletion_timestamp:
            return error("not to be bound")
        if not self.calm and self.random.random() < 0.2:
            return error("refused")
        self.pods.on_update(shown, self.version(info.name, node_name=node_name))
        return SUCCESS

    # --- what happens ---------------------------------------------------------------------------

    def version(self, name: str, **fields: Any) -> Any:
        self.made += 1
        return pod(name, version=str(self.made), **fields)

    def step(self) -> None:
        pods = sorted(self.store.all_pods(), key=lambda each: each.name)
        if not pods or self.random.random() < 0.3:
            self.pods.on_add(self.version(f"p{self.made:04}"))
            return
        one = pods[self.random.randrange(len(pods))]
        waiting = self.core.waiting
        act = self.random.randrange(7)
        if act == 0:
            waiting.allow(one.uid, "X")
        elif act == 1:
            waiting.reject(one.uid, "X", "no")
        elif act == 2:
            CallOff(waiting, self.core.pre_binding, {})(one.uid, "default-scheduler")
        elif act == 3:
            self.pods.on_delete(one, missed=self.random.random() < 0.2)
        elif act == 4 and not one.spec.node_name:
            self.pods.on_update(one, self.version(one.name, deleted=True))
        elif act == 5 and not one.spec.node_name:
            self.pods.on_update(one, self.version(one.name, node_name="n1"))
        else:
            self.queue.activate([one])

    async def play(self) -> None:
        self.tasks.spawn(self.pump.run(), name="pump")
        for _ in range(STEPS):
            self.step()
            await aio.sleep(0.2 * self.random.random())
            self.validate()
        self.calm = True
        for _ in range(30):
            self.queue.flush_backoff()
            self.queue.activate(list(self.store.all_pods()))
            await aio.sleep(1)
        self.validate()
        await self.tasks.cancel_all()


@pytest.mark.parametrize("seed", range(4))
def test_in_the_end_every_pod_is_bound_or_gone(seed: int) -> None:
    world = Walk(seed)
    run_virtual(world.play(), world.clock)
    assert (len(world.core.waiting), world.slots.used) == (0, 0)
    assert world.cache.counts().assumed_pods == 0
    assert world.queue.pending().in_flight == ()
    left = {each.uid for each in world.store.all_pods() if not each.metadata.deletion_timestamp}
    assert {uid for uid, _ in world.cache.dump().node_of_pod.items()} == left
    assert len(left) > 20
    assert world.facts.bind_failures > 20
