"""A snapshot kept current event by event equals one built afresh from what is left."""

from __future__ import annotations

from hypothesis import given, settings

from scheduler.tests.snapshot.builders import COUNTS, IMAGES, content, validate
from scheduler.tests.snapshot.histories import World, histories


@settings(max_examples=80)
@given(histories)
def test_incremental_equals_fresh(history):
    world = World()
    for event in history:
        world.apply(event)
        validate(world.snapshot)
        if event[0] == "look":  # makes the columns on demand: later events keep them
            content(world.snapshot)
    fresh = world.rebuilt()
    assert content(world.snapshot, ports=False) == content(fresh, ports=False)
    assert {name: world.snapshot.image_state(name) for name in IMAGES} == {
        name: fresh.image_state(name) for name in IMAGES
    }
    used = {n: set(world.snapshot.port_sets.at(i)) for i, n in enumerate(world.snapshot.names)}
    assert used == world.ports


@settings(max_examples=50)
@given(histories)
def test_counts_equal_a_naive_count(history):
    world = World()
    for event in history:
        world.apply(event)
        for key in COUNTS:
            naive = dict.fromkeys(world.nodes, 0)
            for where, each in world.pods.values():
                namespaces = key.namespaces
                if (
                    where in naive
                    and (namespaces is None or each.namespace in namespaces)
                    and key.selector.matches(each.metadata.labels)
                    and not (key.live_only and each.metadata.deletion_timestamp)
                ):
                    naive[where] += 1
            counted = world.snapshot.count_column(key).tolist()
            assert dict(zip(world.snapshot.names, counted, strict=True)) == naive
