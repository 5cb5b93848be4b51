"""What metrics show of pod groups that cannot start, while the rest is scheduled."""

from __future__ import annotations

from moorage.base import aio
from moorage.base.clock import ManualClock
from moorage.config.feature_gates import DEFAULT_GATES
from moorage.framework.containment import Containment
from moorage.observe.access import AccessFacts
from moorage.observe.calls import CallFacts
from moorage.observe.waiting_groups import WaitingGroups
from moorage.service.process.metrics import exposition_of
from tests.scenarios.gangs import Cluster, coscheduling, nodes, of_object, play, pod_group


def shown(live: Cluster) -> dict[str, float]:
    """Return the two gauges as a scrape reads them."""
    page, _ = exposition_of(
        live.scheduler,
        calls=CallFacts("server"),
        access=AccessFacts(),
        containment=Containment(),
        gates=DEFAULT_GATES,
    ).page_text("")
    names = ("moorage_pod_groups_waiting", "moorage_pod_group_longest_wait_seconds")
    lines = [line.split() for line in page.decode().splitlines() if line.startswith(names)]
    return {name: float(value) for name, value in lines}


def test_a_stuck_group_shows_from_its_first_rejection_until_it_goes():
    async def scenario(live: Cluster) -> None:
        assert shown(live) == {
            "moorage_pod_groups_waiting": 0,
            "moorage_pod_group_longest_wait_seconds": 0,
        }
        big = [f"big{i}" for i in range(4)]
        await live.create_objects(
            pod_group("big", least=4), *(of_object(each, of="big") for each in big)
        )
        await live.until(lambda: live.condition_of("big3")[0] == "False")
        await aio.sleep(30)
        await live.create_objects(pod_group("small", least=2))
        await live.create_objects(*(of_object(f"small{i}", of="small") for i in range(2)))
        await live.until(lambda: live.bound("small0", "small1") == 2, seconds=2)
        found = shown(live)
        assert found["moorage_pod_groups_waiting"] == 1
        assert 30 <= found["moorage_pod_group_longest_wait_seconds"] < 35
        await live.delete(*big)
        await aio.sleep(2)
        assert shown(live)["moorage_pod_groups_waiting"] == 0

    play(scenario, cluster=nodes(3), config=coscheduling())


def test_waits_count_from_the_first_rejection_and_end_with_a_place_or_the_group():
    clock = ManualClock()
    waiting = WaitingGroups(clock)
    for at, name in enumerate(("a", "b", "c")):
        waiting.attempted(name, placed=False)
        clock.advance(1)
        assert len(waiting.waits({"a", "b", "c"})) == at + 1
    waiting.attempted("a", placed=False)
    assert waiting.waits({"a", "b", "c"}) == [3, 2, 1]
    waiting.attempted("b", placed=True)
    assert waiting.waits({"a", "b", "c"}) == [3, 1]
    assert waiting.waits({"c"}) == [1]
    waiting.attempted("a", placed=False)
    assert waiting.waits({"a", "c"}) == [1, 0]
