"""A controller whose watch is late leaves an object alone that the server has found gone."""

from __future__ import annotations

from typing import Any

from moorage.api.codec import from_dict
from moorage.api.resources import DEPLOYMENTS, REPLICA_SETS, ResourceType
from moorage.base import aio
from moorage.base.aio import TaskOwner
from moorage.base.clock import ManualClock
from moorage.base.errors import NotFoundError
from moorage.base.rng import Streams
from moorage.client.objects import Key
from moorage.controllers.controller import Controller, ControllerInputs
from moorage.controllers.views import View
from moorage.workloads.objects import Whole
from moorage_sandbox.testing.virtual_loop import run_virtual

KEY = ("default", "web")


class NoObjects:
    """A client of a server without objects."""

    async def patch(self, resource: ResourceType, name: str, *_: Any, **__: Any) -> None:
        raise NotFoundError(404, "NotFound", f'{resource.plural} "{name}" not found')


class Writing(Controller):
    """Writes one object of a kind at each sync."""

    def __init__(self, writes: ResourceType) -> None:
        client: Any = NoObjects()
        none: Any = None
        clock, streams = ManualClock(), Streams(1)
        around = ControllerInputs(client, views=none, recorder=none, clock=clock, streams=streams)
        super().__init__(around, name="writing", resource=DEPLOYMENTS)
        self.view = View(DEPLOYMENTS, Whole)
        self.follow(self.view)
        self.writes = writes
        self.synced = 0

    async def sync(self, key: Key) -> float | None:
        self.synced += 1
        await self.patch_object(self.writes, self.view.objects[key], {"spec": {}})
        return None


def deployment(uid: str) -> Whole:
    return from_dict(Whole, {"metadata": {"namespace": KEY[0], "name": KEY[1], "uid": uid}})


def syncs(writes: ResourceType) -> list[int]:
    """Return the syncs after 1 s, after dependents changed for 1 s, and after a new object came."""
    found: list[int] = []

    async def main() -> None:
        controller, tasks = Writing(writes), TaskOwner()
        controller.view.on_add(deployment("a"))
        tasks.spawn(controller.run(), name="controller")
        try:
            await aio.sleep(1)
            found.append(controller.synced)
            for _ in range(10):
                controller.queue.add(KEY)
                await aio.sleep(0.1)
            found.append(controller.synced)
            controller.view.on_update(deployment("a"), deployment("b"))
            await aio.sleep(0.001)
            found.append(controller.synced)
        finally:
            await tasks.cancel_all()

    run_virtual(main(), ManualClock())
    return found


def test_an_object_found_gone_is_left_alone_until_the_watch_tells_of_it() -> None:
    assert syncs(DEPLOYMENTS) == [1, 1, 2]


def test_a_dependent_found_gone_is_tried_again() -> None:
    first, later, last = syncs(REPLICA_SETS)
    assert 1 < first < later < last
