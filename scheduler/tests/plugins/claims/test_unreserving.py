"""The removal of a reservation runs in the background: what the next attempt does meanwhile."""

from __future__ import annotations

from moorage.base import aio
from moorage.framework.status import SUCCESS
from scheduler.tests.plugins.claims.builders import claim
from scheduler.tests.plugins.claims.test_claim_binding import World, reserved_for, scenario, using


def test_a_claim_is_reserved_again_when_the_answer_to_the_removal_has_come():
    """Until then the next attempt sees the old reservation, and would bind the pod without one."""

    async def play(world: World) -> None:
        await world.begin(claim())
        first = world.asked(using("c"))
        await world.bind(first)
        await world.watch()
        first.unreserve("a")
        world.transport.slow_seconds = 5.0
        removal = world.tasks.spawn(world.work(), name="removal")
        await aio.sleep(1.0)
        assert reserved_for(await world.claim()) == []
        assert await world.bind(world.asked(using("c"))) == SUCCESS
        assert reserved_for(await world.claim()) == ["uid-p"]
        assert removal.done()

    scenario(play)


def test_a_reservation_that_is_being_removed_is_not_removed_twice():
    """The second removal could take the reservation of a later attempt."""

    async def play(world: World) -> None:
        await world.begin(claim())
        first = world.asked(using("c"))
        await world.bind(first)
        await world.watch()
        first.unreserve("a")
        world.transport.slow_seconds = 5.0
        removal = world.tasks.spawn(world.work(), name="removal")
        await aio.sleep(1.0)
        second = world.asked(using("c"))
        second.filtered()
        assert second.reserve("a") == SUCCESS
        second.unreserve("a")
        _, again = world.told.work[-1]
        await again()
        assert await world.bind(world.asked(using("c"))) == SUCCESS
        assert removal.done()

    scenario(play)
